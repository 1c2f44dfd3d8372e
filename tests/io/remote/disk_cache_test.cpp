#include "libdtrain/io/remote/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::remote {
namespace {

namespace fs = std::filesystem;

const std::string kObject(64, 'a');
constexpr uint64_t kFileBytes = kBlockBytes + 8192;  // at most, on the disk

std::vector<char> content_of(const BlockId& block) {
  std::vector<char> bytes(block.bytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 1000 + block.number);
  return bytes;
}

// A cache in a temporary folder, whose blocks come from content_of().
class TestedCache {
 public:
  explicit TestedCache(uint64_t max_bytes, FileSystem& files = system_files())
      : cache_({.directory = folder_.path().string(),
                .max_bytes = max_bytes,
                .notice = [this](const std::string& text) { notices.push_back(text); }},
               files) {}

  BlockId block(uint64_t number, size_t bytes = kBlockBytes) const { return {kObject, number, bytes}; }

  // Reads a part of a block; returns whether its bytes are right.
  bool read(const BlockId& block, size_t begin, size_t size) {
    std::vector<char> got(size);
    cache_.read_or_fetch(block, begin, got, [&](std::span<char> into) {
      ++fetches;
      std::ranges::copy(content_of(block), into.begin());
    });
    const std::vector<char> all = content_of(block);
    return std::equal(got.begin(), got.end(), all.begin() + static_cast<ptrdiff_t>(begin));
  }
  bool read(uint64_t number) { return read(block(number), 0, kBlockBytes); }

  std::vector<fs::path> files(const std::string& ending) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      if (entry.path().string().ends_with(ending)) found.push_back(entry.path());
    return found;
  }
  fs::path file(uint64_t number) const {
    return folder_.path() / "remote-blocks" / "aa" / concat(std::string(38, 'a'), "-", number, ".block");
  }
  uint64_t disk_bytes() const {
    uint64_t sum = 0;
    for (const fs::path& path : files(".block")) sum += fs::file_size(path);
    return sum;
  }
  std::string folder() const { return folder_.path().string(); }
  DiskCache* operator->() { return &cache_; }

  int fetches = 0;
  std::vector<std::string> notices{};

 private:
  TempDirectory folder_;
  DiskCache cache_;
};

TEST(DiskCache, FetchesEachBlockOnce) {
  TestedCache cache(10 * kFileBytes);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(cache.read(cache.block(0), 65'530, 70'000));
    EXPECT_TRUE(cache.read(cache.block(0), 0, kBlockBytes));
    EXPECT_TRUE(cache.read(cache.block(1, 100'001), 100'000, 1));
    EXPECT_TRUE(cache.read(cache.block(2, 1), 0, 1));
  }
  EXPECT_EQ(cache.fetches, 3);
  EXPECT_EQ(cache->stats().bytes_fetched, kBlockBytes + 100'002);
  EXPECT_EQ(cache->stats().damaged_blocks, 0u);
  EXPECT_TRUE(cache.files(".part").empty());
}

TEST(DiskCache, FetchesDamagedBlocksAgain) {
  TestedCache cache(10 * kFileBytes);
  const auto damages = std::vector<std::function<void(const fs::path&)>>{
      [](const fs::path& file) { fs::resize_file(file, 100); },
      [](const fs::path& file) { fs::resize_file(file, 0); },
      [](const fs::path& file) { fs::resize_file(file, kBlockBytes / 2); },
      [](const fs::path& file) { std::fstream(file, std::ios::in | std::ios::out).seekp(20).put('x'); },
      [](const fs::path& file) { std::fstream(file, std::ios::in | std::ios::out).seekp(90).put('x'); },
      [](const fs::path& file) { std::fstream(file, std::ios::in | std::ios::out).seekp(1'000'000).put('\x80'); },
      [&](const fs::path& file) { fs::copy_file(cache.file(1), file, fs::copy_options::overwrite_existing); }};
  EXPECT_TRUE(cache.read(1));
  EXPECT_TRUE(cache.read(0));
  cache.fetches = 0;
  for (const auto& damage : damages) {
    damage(cache.file(0));
    EXPECT_TRUE(cache.read(0));
    EXPECT_TRUE(cache.read(0));
  }
  EXPECT_EQ(cache.fetches, static_cast<int>(damages.size()));
  EXPECT_EQ(cache->stats().damaged_blocks, damages.size());
}

TEST(DiskCache, StaysBelowItsSizeAndRemovesTheLeastRecentlyRead) {
  constexpr uint64_t kMost = 6 * kFileBytes;
  TestedCache cache(kMost);
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(cache.read(i));
    fs::last_write_time(cache.file(i), fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  EXPECT_TRUE(cache.read(0));  // is now the newest
  for (uint64_t i = 5; i < 30; ++i) {
    EXPECT_TRUE(cache.read(i));
    EXPECT_LE(cache.disk_bytes(), kMost);
    if (i == 6) {
      EXPECT_FALSE(fs::exists(cache.file(1)));
      EXPECT_TRUE(fs::exists(cache.file(0)));
    }
  }
  EXPECT_GE(cache.files(".block").size(), 4u);
  EXPECT_EQ(cache.fetches, 30);
}

TEST(DiskCache, ShrinksAtTheStart) {
  TestedCache cache(10 * kFileBytes);
  for (uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(cache.read(i));
  const DiskCache smaller({.directory = cache.folder(), .max_bytes = 3 * kFileBytes});
  EXPECT_LE(cache.disk_bytes(), 3 * kFileBytes);
  EXPECT_GE(cache.disk_bytes(), 2 * kBlockBytes);
}

TEST(DiskCache, KeepsAShareOfMoreDataThanItHolds) {
  TestedCache cache(100 * kFileBytes);
  EXPECT_TRUE(cache->keeps(cache.block(7)));
  cache->add_file(400 * kBlockBytes);
  int kept = 0;
  for (uint64_t i = 0; i < 4000; ++i) kept += cache->keeps(cache.block(i));
  EXPECT_NEAR(kept, 875, 100);
  cache->remove_file(400 * kBlockBytes);
  EXPECT_TRUE(cache->keeps(cache.block(7)));
}

TEST(DiskCache, StoresNothingWithoutRoom) {
  TestedCache cache(kBlockBytes);
  EXPECT_TRUE(cache.read(0));
  EXPECT_TRUE(cache.read(0));
  EXPECT_EQ(cache.fetches, 2);
  EXPECT_EQ(cache->stats().unstored_blocks, 2u);
  EXPECT_TRUE(cache.files(".part").empty());
}

// A process that was killed while it fetched a block leaves a part file without a lock, and a wrong usage.
TEST(DiskCache, ContinuesAfterAKilledProcess) {
  TestedCache cache(6 * kFileBytes);
  EXPECT_TRUE(cache.read(0));
  std::ofstream(cache.file(1).replace_extension(".part")) << std::string(2 * kBlockBytes, 'x');
  std::ofstream(cache.file(2).replace_extension(".part")) << "x";
  EXPECT_TRUE(cache.read(1));
  EXPECT_TRUE(cache.read(1));
  EXPECT_EQ(cache.fetches, 2);
  for (const char* usage : {"", "x", "99999999999999999999\n", "00000000999999999999\n"}) {
    std::ofstream(cache.file(0).parent_path().parent_path() / "usage") << usage;
    for (uint64_t i = 10; i < 18; ++i) EXPECT_TRUE(cache.read(i)) << usage;
  }
  EXPECT_TRUE(cache.files(".part").empty());
  EXPECT_LE(cache.files(".block").size(), 6u);
}

TEST(DiskCache, ThreadsFetchABlockOnce) {
  TestedCache cache(10 * kFileBytes);
  std::atomic<int> fetches = 0, right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        for (uint64_t number = 0; number < 4; ++number) {
          const BlockId block = cache.block(number);
          std::vector<char> got(1000);
          cache->read_or_fetch(block, 500, got, [&](std::span<char> into) {
            ++fetches;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            std::ranges::copy(content_of(block), into.begin());
          });
          const std::vector<char> all = content_of(block);
          right += std::equal(got.begin(), got.end(), all.begin() + 500);
        }
      });
  }
  EXPECT_EQ(fetches, 4);
  EXPECT_EQ(right, 32);
}

class FullDisk : public FileSystem {
 public:
  ssize_t write(int fd, const void* data, size_t size) override {
    if (written_ + size > 3 * kBlockBytes) {
      errno = ENOSPC;
      return -1;
    }
    written_ += size;
    return FileSystem::write(fd, data, size);
  }

 private:
  size_t written_ = 0;
};

TEST(DiskCache, GoesOnWithAFullDisk) {
  FullDisk disk;
  TestedCache cache(100 * kFileBytes, disk);
  for (int round = 0; round < 2; ++round)
    for (uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(cache.read(i));
  EXPECT_EQ(cache.fetches, 6 + 4);
  ASSERT_EQ(cache.notices.size(), 1u);
  EXPECT_NE(cache.notices[0].find("No space left on device"), std::string::npos) << cache.notices[0];
  EXPECT_TRUE(cache.files(".part").empty());
  EXPECT_GT(cache->stats().unstored_blocks, 0u);
}

class AlmostFullDisk : public FileSystem {
 public:
  int free_bytes(const std::string&, uint64_t& bytes) override {
    bytes = uint64_t{200} << 20;
    return 0;
  }
};

TEST(DiskCache, LeavesSpaceForCheckpoints) {
  AlmostFullDisk disk;
  TestedCache cache(100 * kFileBytes, disk);
  EXPECT_TRUE(cache.read(0));
  EXPECT_TRUE(cache.read(1));
  ASSERT_EQ(cache.notices.size(), 1u);
  EXPECT_NE(cache.notices[0].find("its disk has 209715200 bytes left"), std::string::npos) << cache.notices[0];
  EXPECT_TRUE(cache.files(".block").empty());
}

TEST(DiskCache, RefusesFoldersOfOthers) {
  const TempDirectory folder;
  const fs::path blocks = folder.path() / "remote-blocks";
  const auto open = [&] { DiskCache({.directory = folder.path().string(), .max_bytes = 1 << 30}); };
  std::ofstream(blocks) << "";
  expect_error(open, Fault::config, concat(blocks.string(), ": is not a folder"));
  fs::remove(blocks);
  fs::create_directory(blocks);
  fs::permissions(blocks, fs::perms::all);
  expect_error(open, Fault::config, "other users can write to this folder");
}

}  // namespace
}  // namespace dtrain::remote
