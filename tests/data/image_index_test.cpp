// Index of class folders between runs: places, staleness, damage, concurrent processes.
#include "data/image_index.h"

#include <chrono>
#include <fstream>
#include <thread>

#include "dtrain/io/record_file.h"
#include "tests/data/image_folder_fixture.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

using ImageIndexTest = ImageFolderFixture;

TEST_F(ImageIndexTest, IndexIsKeptBesideTheFolder) {
  place("train/a/1.jpg", numbered_jpeg(1));
  place("train/a/2.jpg", numbered_jpeg(2));
  EXPECT_EQ(listed().size(), 2u);
  EXPECT_TRUE(fs::exists(root / ".train.dtidx"));
  EXPECT_TRUE(is_indexed("train/a/1.jpg"));
}

TEST_F(ImageIndexTest, IndexOfReadOnlyDataIsInTheCache) {
  place("train/a/1.jpg", numbered_jpeg(1));
  fs::permissions(root.path(), fs::perms::owner_write, fs::perm_options::remove);
  open();
  fs::permissions(root.path(), fs::perms::owner_write, fs::perm_options::add);
  EXPECT_FALSE(fs::exists(root / ".train.dtidx"));
  EXPECT_TRUE(is_indexed("train/a/1.jpg"));
}

TEST_F(ImageIndexTest, StaleIndicesAreNoticed) {
  place("train/a/1.jpg", numbered_jpeg(1));
  place("train/a/2.jpg", numbered_jpeg(2));
  const std::string before = open()->contents(), names = open()->identity();
  const auto modified = fs::last_write_time(root / "train/a/1.jpg");
  // Other bytes of the same size at another time.
  std::string other = numbered_jpeg(1);
  other.back() = 'x';
  std::ofstream(root / "train/a/1.jpg", std::ios::binary) << other;
  fs::last_write_time(root / "train/a/1.jpg", modified + std::chrono::seconds(1));
  EXPECT_NE(open()->contents(), before);
  EXPECT_EQ(open()->identity(), names);
  place("train/a/0.jpg", numbered_jpeg(3));
  EXPECT_EQ(listed(), (Lines{"0 a/0.jpg", "0 a/1.jpg", "0 a/2.jpg"}));
  fs::remove(root / "train/a/1.jpg");
  EXPECT_EQ(listed(), (Lines{"0 a/0.jpg", "0 a/2.jpg"}));
  fs::rename(root / "train/a", root / "train/b");
  EXPECT_EQ(listed(), (Lines{"0 b/0.jpg", "0 b/2.jpg"}));
  EXPECT_NE(open()->identity(), names);
}

TEST_F(ImageIndexTest, ChangedFilesAreNotReadAsOthers) {
  place("train/a/1.jpg", numbered_jpeg(1));
  const auto source = open();
  std::vector<std::byte> buffer;
  EXPECT_EQ(source->read(0, buffer).size(), numbered_jpeg(1).size());
  std::string other = numbered_jpeg(1);
  other[other.size() / 2] = static_cast<char>(other[other.size() / 2] ^ 1);
  place("train/a/1.jpg", other);
  expect_error([&] { source->read(0, buffer); }, Fault::data, "or was changed with its time kept");
  place("train/a/1.jpg", numbered_jpeg(1) + "x");
  expect_error([&] { source->read(0, buffer); }, Fault::data, "the file has changed from ");
}

TEST_F(ImageIndexTest, DamagedIndicesAreMadeAgain) {
  for (const char* name : {"a/1.jpg", "b/2.jpg", "b/3.txt"}) place(concat("train/", name), numbered_jpeg(1));
  const std::string contents = open()->contents(), path = (root / ".train.dtidx").string(), good = read_file(path);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    write_file(path, bad);
    EXPECT_EQ(open()->contents(), contents);
    EXPECT_EQ(read_file(path), good) << "not repaired after damage at byte " << at;
    if (at % 8) continue;
    write_file(path, good.substr(0, at));
    EXPECT_EQ(open()->contents(), contents);
  }
}

TEST_F(ImageIndexTest, ProcessesIndexTogether) {
  for (int i = 0; i < 40; ++i) place(fmt::format("train/{}/{}.jpg", i % 4, i), numbered_jpeg(i));
  const std::string contents = open()->contents();
  std::vector<std::jthread> ranks;
  for (int i = 0; i < 8; ++i)
    ranks.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        const auto source = open_image_folder({root.path().string(), true, {.directory = (cache / "c").string()}, {}});
        EXPECT_EQ(source->contents(), contents);
        std::error_code ignored;
        if (round % 2) fs::remove(root / ".train.dtidx", ignored);
      }
    });
}

TEST_F(ImageIndexTest, StopEndsTheIndexing) {
  place("train/a/1.jpg", numbered_jpeg(1));
  const CacheOptions stopped{.directory = (cache / "c").string(), .stop = [] { return true; }};
  expect_error(
      [&] {
        open_image_folder({root.path().string(), true, stopped, {}});
      },
      Fault::resource, "a stop was requested while data was opened");
}

TEST_F(ImageIndexTest, ProgressCountsFilesThatAreRead) {
  for (int i = 0; i < 5; ++i) place(fmt::format("train/a/{}.jpg", i), numbered_jpeg(i));
  std::vector<uint64_t> done;
  const CacheOptions shown{.progress = [&](uint64_t opened, uint64_t files) {
    done.push_back(opened);
    EXPECT_EQ(files, 5u);
  }};
  open_image_folder({root.path().string(), true, shown, {}});
  EXPECT_EQ(done, (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  open_image_folder({root.path().string(), true, shown, {}});
  EXPECT_EQ(done.size(), 5u);
}

TEST_F(ImageIndexTest, IndexBodyIsParsedStrictly) {
  const std::vector<IndexedFile> files = {{"a/1.jpg", 5, -3, 7, FileContent::image},
                                          {"b/x", 0, 1, 0, FileContent::other}};
  const std::string body = image_index_body(files);
  EXPECT_EQ(image_index_from(body), files);
  for (size_t size = 0; size < body.size(); ++size) EXPECT_EQ(image_index_from(body.substr(0, size)), std::nullopt);
  EXPECT_EQ(image_index_from(body + "x"), std::nullopt);
  const std::vector<IndexedFile> huge = {{"a/1.jpg", kMaxRecordBytes + 1, 0, 0, FileContent::image}};
  EXPECT_EQ(image_index_from(image_index_body(huge)), std::nullopt);
}

}  // namespace
}  // namespace dtrain::data
