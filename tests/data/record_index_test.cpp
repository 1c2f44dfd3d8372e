#include "dtrain/data/record_index.h"

#include <fstream>
#include <set>
#include <thread>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

std::string file_bytes(const fs::path& path) { return read_text(path.string(), size_t{1} << 24); }

void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Writes `count` records of 0 to 99 bytes.
std::vector<std::string> write_shard(const fs::path& path, int count) {
  RandomStream random(5, 0);
  std::vector<std::string> records;
  RecordWriter writer(path.string());
  for (int i = 0; i < count; ++i) {
    records.emplace_back(random.below(100), static_cast<char>(random.next()));
    writer.append(records.back());
  }
  writer.finish();
  return records;
}

void expect_reads(const RecordFile& file, const RecordIndex& index, const std::vector<std::string>& records) {
  ASSERT_EQ(index.size(), records.size());
  std::vector<std::byte> buffer;
  for (uint64_t i = records.size(); i-- > 0;) {
    const auto bytes = file.read_record_at(index.offset(i), index.length(i), i, buffer);
    ASSERT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), records[i]);
  }
}

TEST(RecordIndex, IsCachedBesideTheFile) {
  const TempDirectory directory;
  const auto records = write_shard(directory / "shard", 50);
  const RecordFile file((directory / "shard").string());
  expect_reads(file, RecordIndex::open(file, ""), records);
  EXPECT_TRUE(fs::exists(directory / ".shard.dtidx"));

  // A damaged header proves that the second open does not scan.
  const auto modified = fs::last_write_time(directory / "shard");
  std::string bytes = file_bytes(directory / "shard");
  bytes[0] = 'x';
  overwrite(directory / "shard", bytes);
  fs::last_write_time(directory / "shard", modified);
  EXPECT_EQ(RecordIndex::open(file, "").size(), 50u);
  fs::remove(directory / ".shard.dtidx");
  EXPECT_EQ(RecordIndex::open(file, "").size(), 0u);
}

TEST(RecordIndex, ChecksumCoversContents) {
  const TempDirectory directory;
  std::set<uint32_t> checksums;
  for (const std::vector<std::string>& records :
       {std::vector<std::string>{"one", "two"}, {"one", "too"}, {"two", "one"}, {"onetwo"}, {"one", "two", ""}, {}}) {
    const std::string path = (directory / std::to_string(checksums.size())).string();
    RecordWriter writer(path);
    for (const std::string& record : records) writer.append(record);
    writer.finish();
    const RecordFile file(path);
    const uint32_t checksum = RecordIndex::scan(file).checksum();
    EXPECT_TRUE(checksums.insert(checksum).second) << records.size() << " records";
    EXPECT_EQ(RecordIndex::open(file, "").checksum(), checksum);
    EXPECT_EQ(RecordIndex::open(file, "").checksum(), checksum) << "as it is kept";
  }
}

TEST(RecordIndex, RespectsReadOnlyFolders) {
  const TempDirectory directory, cache;
  write_shard(directory / "shard", 3);
  const RecordFile file((directory / "shard").string());
  fs::permissions(directory.path(), fs::perms::owner_write, fs::perm_options::remove);
  RecordIndex::open(file, cache.path().string());  // root can write there despite the mode
  fs::permissions(directory.path(), fs::perms::owner_write, fs::perm_options::add);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache / "index"), fs::directory_iterator()), 1);
}

TEST(RecordIndex, FallsBackToTheCacheFolder) {
  const TempDirectory directory, cache;
  const auto records = write_shard(directory / "shard", 20);
  fs::create_directory(directory / ".shard.dtidx");  // blocks the file name
  const RecordFile file((directory / "shard").string());
  expect_reads(file, RecordIndex::open(file, (cache / "new").string()), records);
  const auto kept = fs::directory_iterator(cache / "new/index")->path();
  EXPECT_EQ(kept.filename().string().rfind("shard-", 0), 0u);
  expect_reads(file, RecordIndex::open(file, (cache / "new").string()), records);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache / "new/index"), fs::directory_iterator()), 1);

  overwrite(cache / "file", "");  // blocks the folder name
  expect_reads(file, RecordIndex::open(file, (cache / "file").string()), records);
}

TEST(RecordIndex, IsRebuiltWhenStale) {
  const TempDirectory directory;
  const fs::path path = directory / "shard";
  RecordWriter first(path.string()), second((directory / "other").string());
  for (const char* record : {"a", "bcd"}) first.append(record);
  for (const char* record : {"bcd", "a"}) second.append(record);
  first.finish();
  second.finish();
  const RecordFile old_file(path.string());
  EXPECT_EQ(RecordIndex::open(old_file, "").length(0), 1u);
  fs::last_write_time(directory / "other", fs::last_write_time(path) + std::chrono::seconds(1));
  fs::rename(directory / "other", path);
  const RecordFile new_file(path.string());
  EXPECT_EQ(new_file.size(), old_file.size());
  EXPECT_EQ(RecordIndex::open(new_file, "").length(0), 3u);
}

TEST(RecordIndex, IsRebuiltWhenDamaged) {
  const TempDirectory directory;
  const auto records = write_shard(directory / "shard", 5);
  const RecordFile file((directory / "shard").string());
  RecordIndex::open(file, "");
  const std::string good = file_bytes(directory / ".shard.dtidx");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    overwrite(directory / ".shard.dtidx", bad);
    expect_reads(file, RecordIndex::open(file, ""), records);
    EXPECT_EQ(file_bytes(directory / ".shard.dtidx"), good) << "not repaired after damage at byte " << at;
    if (at % 8) continue;
    overwrite(directory / ".shard.dtidx", good.substr(0, at));
    expect_reads(file, RecordIndex::open(file, ""), records);
  }
}

TEST(RecordIndex, StopsAtUnreachableRecords) {
  const TempDirectory directory;
  const auto records = write_shard(directory / "whole", 6);
  const std::string good = file_bytes(directory / "whole");
  const RecordIndex whole = RecordIndex::scan(RecordFile((directory / "whole").string()));
  const uint64_t last = whole.offset(5);
  struct Damage {
    std::string name, bytes;
    uint64_t readable;
  };
  std::string flipped_length = good, flipped_crc = good, flipped_body = good;
  flipped_length[whole.offset(3)] = static_cast<char>(flipped_length[whole.offset(3)] ^ 1);
  flipped_crc[whole.offset(3) + 9] = static_cast<char>(flipped_crc[whole.offset(3) + 9] ^ 1);
  flipped_body[good.size() - 1] = static_cast<char>(flipped_body[good.size() - 1] ^ 1);
  for (const auto& [name, bytes, readable] :
       {Damage{"length", flipped_length, 3}, Damage{"length_crc", flipped_crc, 3}, Damage{"body", flipped_body, 6},
        Damage{"cut_in_header", good.substr(0, last + 5), 5}, Damage{"cut_in_crc", good.substr(0, last + 10), 5},
        Damage{"cut_in_body", good.substr(0, good.size() - 5), 5},
        Damage{"cut_in_tail", good.substr(0, good.size() - 1), 5}}) {
    overwrite(directory / name, bytes);
    const RecordFile file((directory / name).string());
    const RecordIndex index = RecordIndex::open(file, "");
    EXPECT_EQ(index.size(), readable) << name;
    EXPECT_EQ(index.fault().empty(), readable == 6) << name;
    EXPECT_EQ(fs::exists(directory / ("." + name + ".dtidx")), readable == 6) << name;
    if (readable < 6) {
      const std::string place = concat("record ", readable, " at byte ", whole.offset(readable));
      EXPECT_NE(index.fault().find(place), std::string::npos) << index.fault();
      EXPECT_NE(index.fault().find(file.path()), std::string::npos) << index.fault();
    }
  }
}

TEST(RecordIndex, EmptyFileHasNoRecords) {
  const TempDirectory directory;
  overwrite(directory / "shard", "");
  const RecordIndex index = RecordIndex::open(RecordFile((directory / "shard").string()), "");
  EXPECT_EQ(index.size(), 0u);
  EXPECT_TRUE(index.fault().empty());
}

TEST(RecordIndex, ConcurrentCreation) {
  const TempDirectory directory;
  const auto records = write_shard(directory / "shard", 100);
  {
    std::vector<std::jthread> ranks;
    for (int i = 0; i < 8; ++i)
      ranks.emplace_back([&] {
        const RecordFile file((directory / "shard").string());
        for (int round = 0; round < 5; ++round) {
          EXPECT_EQ(RecordIndex::open(file, "").size(), 100u);
          std::error_code ignored;
          if (round % 2) fs::remove(directory / ".shard.dtidx", ignored);
        }
      });
  }
  const RecordFile file((directory / "shard").string());
  expect_reads(file, RecordIndex::open(file, ""), records);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace dtrain::data
