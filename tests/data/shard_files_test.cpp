// Shard discovery in all folders and numberings.
#include "data/shard_files.h"

#include <fstream>

#include "dtrain/io/atomic_file.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

class ShardFiles : public testing::Test {
 protected:
  void touch(const std::string& name) const {
    fs::create_directories((directory / name).parent_path());
    std::ofstream(directory / name).put(' ');
  }
  void remove(const std::string& name) const { fs::remove(directory / name); }
  void refuses(const std::string& message, const std::string& split = "train") const {
    expect_error([&] { find_shards(directory.path().string(), split); }, Fault::data, message);
  }
  // Names of the discovered shards, relative to the directory.
  std::vector<std::string> found(const std::string& split) const {
    std::vector<std::string> names;
    for (const std::string& path : find_shards(directory.path().string(), split))
      names.push_back(fs::relative(path, directory.path()).string());
    return names;
  }

  TempDirectory directory;
};

TEST_F(ShardFiles, MustBeComplete) {
  refuses("no train-*-of-* files");
  for (const char* name : {"train-00002-of-00003", "train-00000-of-00003", "validation-00000-of-00001", "notes.txt",
                           ".train-00000-of-00003.dtidx"})
    touch(name);
  touch(temporary_name("train-00001-of-00003"));
  refuses("train-00001-of-00003 is missing (2 of 3 shards found)");
  touch("train-00001-of-00003");
  EXPECT_EQ(found("train"),
            (std::vector<std::string>{"train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"}));
  touch("train-00003-of-00003");
  refuses("train-00003-of-00003 is one shard too many");
  remove("train-00003-of-00003");
  touch("train-00001-of-00003.gz");
  refuses("two files for one shard, train-00001-of-00003 and train-00001-of-00003.gz");
  remove("train-00001-of-00003.gz");
  touch("train-00000-of-00004");
  refuses("shards of two data sets, train-00000-of-00003 and train-00000-of-00004");
  expect_error([&] { find_shards((directory / "absent").string(), "train"); }, Fault::data, "cannot list");
}

TEST_F(ShardFiles, MayStartAtOne) {
  touch("train-00002-of-00002.gz");
  refuses("train-00001-of-00002 is missing (1 of 2 shards found)");
  touch("train-00001-of-00002.gz");
  EXPECT_EQ(found("train"), (std::vector<std::string>{"train-00001-of-00002.gz", "train-00002-of-00002.gz"}));
  touch("train-00000-of-00002.gz");
  refuses("train-00002-of-00002.gz is one shard too many");
}

TEST_F(ShardFiles, ReportMissingShards) {
  for (const int number : {0, 3, 9}) touch(concat("train-", number, "-of-12"));
  refuses(
      "9 of 12 shards are missing: train-01-of-12 to train-02-of-12, train-04-of-12 to train-08-of-12, "
      "train-10-of-12 to train-11-of-12");
  // Reported as fast as any other gap.
  touch("validation-00007-of-999999999");
  refuses(
      "999999998 of 999999999 shards are missing: validation-000000000-of-999999999 to "
      "validation-000000006-of-999999999, validation-000000008-of-999999999 to validation-999999998-of-999999999",
      "validation");
  for (int number = 0; number < 40; number += 2) touch(concat("test-", number, "-of-40"));
  refuses("20 of 40 shards are missing: test-01-of-40, test-03-of-40", "test");
  refuses("test-15-of-40 and more", "test");
}

TEST_F(ShardFiles, MayBeInASplitFolder) {
  touch("train/train-00000-of-00001");
  touch("val/validation-00001-of-00002");
  refuses("val: validation-00000-of-00002 is missing", "validation");
  touch("val/validation-00000-of-00002");
  EXPECT_EQ(found("train"), std::vector<std::string>{"train/train-00000-of-00001"});
  EXPECT_EQ(found("validation"),
            (std::vector<std::string>{"val/validation-00000-of-00002", "val/validation-00001-of-00002"}));
  touch("train-00000-of-00001");
  refuses("both hold train-*-of-* files; keep the files of one data set");
  touch("validation/validation-00000-of-00001");
  refuses("val both hold validation-*-of-* files", "validation");
  remove("val/validation-00000-of-00002");
  remove("val/validation-00001-of-00002");
  EXPECT_EQ(found("validation"), std::vector<std::string>{"validation/validation-00000-of-00001"});
}

}  // namespace
}  // namespace dtrain::data
