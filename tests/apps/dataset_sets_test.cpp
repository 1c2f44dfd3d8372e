// Regenerated data sets, and `verify` on mixed shards.
#include "tests/apps/dataset_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class DatasetSets : public DatasetProgram {
 protected:
  void make(const std::string& folder, int seed) const {
    expect(
        concat("synthesize --train 24 --validation 8 --shards 4 --image_size 16 --output ", folder, " --seed ", seed),
        0, "train: 24 images in 4 shards");
  }
  // verify reports one fault, in a line that begins with `file` and contains `part`.
  void expect_fault(const std::string& file, const std::string& part) const {
    const Outcome outcome = run("verify set");
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out.find("set/" + file), 0u) << outcome.out;
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(" 1 faults"), std::string::npos) << outcome.out;
  }
  std::string bytes_of_all(const std::string& folder) const {
    std::string all;
    for (const std::string& name : listing(root / folder)) all += name + "\n" + contents(root / folder / name);
    return all;
  }
};

TEST_F(DatasetSets, FailedConversionKeepsTheOldSet) {
  for (const char* split : {"train", "val"})
    for (int i = 0; i < 6; ++i) place_file(root / concat("in/", split, "/a/", i, ".JPEG"), small_jpeg(i));
  const std::string command = "imagenet --input in --output set --shards 3 --validation_shards 2";
  expect(command, 0, "validation: 6 images in 2 shards, set/validation-*-of-00002");
  expect("verify set", 0, "5 files, 12 records, 0 faults");
  const std::string old = bytes_of_all("set");
  const std::string again = command + " --seed 1 --threads 1";
  for (const char* split : {"train", "val"}) {
    const fs::path broken = root / concat("in/", split, "/a/9.JPEG");
    place_file(broken, small_jpeg().substr(0, 100));
    const Outcome outcome = run(again);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "") << "told of shards that are not there";
    EXPECT_TRUE(bytes_of_all("set") == old) << split;
    fs::remove(broken);
  }
  expect(again, 0, "train: 6 images in 3 shards");
  EXPECT_FALSE(bytes_of_all("set") == old);
  expect("verify set", 0, "5 files, 12 records, 0 faults");
}

TEST_F(DatasetSets, MixedShardsAreAFault) {
  make("set", 0);
  make("other", 1);
  expect("verify set set/train-00002-of-00004", 0, "6 files, 38 records, 0 faults");
  const fs::path shard = root / "set/train-00002-of-00004", own = root / "own";
  fs::copy(shard, own);
  fs::copy(root / "other/train-00002-of-00004", shard, fs::copy_options::overwrite_existing);
  expect_fault("train-00002-of-00004", "is not the shard that was written with the others");
  expect("verify set/train-00002-of-00004 set/train-00003-of-00004", 2, "2 files, 12 records, 1 faults");
  // Its records are read; a set without a manifest is accepted.
  expect("inspect set", 0, "\"records\":6");
  fs::rename(root / "set/.shards", root / ".shards");
  expect("verify set", 0, "5 files, 32 records, 0 faults");
  fs::rename(root / ".shards", root / "set/.shards");

  fs::remove(shard);
  expect_fault("train-00002-of-00004", "is missing (set/.shards); make the data set again");
  fs::copy(own, shard);
  expect("verify set", 0, "5 files, 32 records, 0 faults");
  fs::copy(own, root / "set/train-00002-of-00005");
  expect_fault("train-00002-of-00005", "does not belong to the set of shards");
  fs::remove(root / "set/train-00002-of-00005");
  for (int i = 0; i < 4; ++i) fs::remove(root / concat("set/train-0000", i, "-of-00004"));
  expect("verify set", 0, "1 files, 8 records, 0 faults");
}

TEST_F(DatasetSets, ADamagedFileOrListIsOneFault) {
  make("set", 0);
  std::string bytes = contents(root / "set/train-00001-of-00004");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  place_file(root / "set/train-00001-of-00004", bytes);
  expect_fault("train-00001-of-00004: record ", "corrupted body");
  make("set", 0);
  place_file(root / "set/.shards", "dtrain shards, version 1\n");
  expect_fault(".shards", "damaged");
}

// As after a kill while the new shards replace the old ones.
TEST_F(DatasetSets, ReportsAndFinishesAnInterruptedExchange) {
  make("set", 0);
  make("new", 1);
  fs::create_directory(root / "set/.shards.new");
  for (const char* name :
       {".shards", "train-00001-of-00004", "train-00002-of-00004", "train-00003-of-00004", "validation-00000-of-00001"})
    fs::copy(root / "new" / name, root / "set/.shards.new" / name);
  fs::copy(root / "new/train-00000-of-00004", root / "set/train-00000-of-00004", fs::copy_options::overwrite_existing);
  const std::string told = "set: new shards are only partly in place, the others are in set/.shards.new";
  expect("verify set", 2, told);
  expect("throughput set", 2, told);
  place_file(root / "in/train/a/broken.JPEG", "no image");
  expect("imagenet --input in --output set --shards 4", 2, "broken.JPEG: ");
  EXPECT_TRUE(bytes_of_all("set") == bytes_of_all("new"));
}

}  // namespace
}  // namespace dtrain
