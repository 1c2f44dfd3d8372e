// Folders and archives of other tools: dtrain-data recognises them or reports skipped files.
#include "dtrain/data/example.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/tar_files.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class DatasetFolders : public DatasetProgram {
 protected:
  void place_images(const std::string& folder, int count = 1) const {
    for (const char* name : {"a", "b"})
      for (int i = 0; i < count; ++i) place_file(root / "in" / folder / name / concat(i, ".jpg"), small_jpeg(i));
  }
};

TEST_F(DatasetFolders, SplitsByTheirUsualNames) {
  place_images("train");
  place_images("valid", 2);
  place_images("test");
  const Outcome outcome = run("imagenet --input in/ --shards 1 --output set");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "validation: 4 images in 1 shards")) << outcome.out;
  EXPECT_TRUE(
      contains(outcome.err, "in/: skipped, because only train and validation (or val, valid) are converted: test"))
      << outcome.err;
  fs::remove_all(root / "in/valid");
  expect("imagenet --input in --shards 1 --output other", 0, "in/test: used as validation data");
  expect("verify other", 0, "2 files, 4 records, 0 faults");
}

TEST_F(DatasetFolders, IgnoresSystemFiles) {
  place_images("train");
  place_file(root / "in/train/__MACOSX/a/._0.jpg", "mac");
  place_file(root / "in/train/a/._0.jpg", "mac");
  place_file(root / "in/train/a/.DS_Store", "mac");
  place_file(root / "in/train/@eaDir/0.jpg", "synology");
  expect("imagenet --input in --shards 1 --output set", 0, "train: 2 images in 1 shards");
  expect("verify set", 0, "1 files, 2 records, 0 faults");
  expect("resize --input in --output out --size 8", 0, "2 images in out");
}

TEST_F(DatasetFolders, OneArchiveMayHoldBothSplits) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* name : {"train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg", "test/b/4.jpg", "train/a/._1.jpg",
                           "__MACOSX/train/a/5.jpg", "._train.tar"})
    files.emplace_back(concat("set/", name), small_jpeg(1));
  place_file(root / "both.tar", tar_of(files));
  const Outcome outcome = run("imagenet --train_tar both.tar --shards 1 --output set");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "train: 2 images in 1 shards")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "validation: 1 images in 1 shards")) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "both.tar: holds 1 validation images beside train/: they are the validation data"))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "both.tar: holds 1 test images beside train/: they are left out")) << outcome.err;
  // Without class folders, `train` is a class, as in Pascal VOC.
  place_file(root / "voc.tar", tar_of({{"train/1.jpg", small_jpeg(1)}, {"bus/2.jpg", small_jpeg(2)}}));
  expect("imagenet --train_tar voc.tar --shards 1 --output voc", 0, "train: 2 images in 1 shards");
}

TEST_F(DatasetFolders, ClassesMayBeNamedLikeSplits) {
  const auto convert = [&](const std::vector<std::string>& names, const char* output) {
    std::vector<std::pair<std::string, std::string>> files;
    for (const std::string& name : names) files.emplace_back(name, small_jpeg(1));
    place_file(root / "a.tar", tar_of(files));
    return run(concat("imagenet --train_tar a.tar --shards 1 --output ", output));
  };
  // A class called train.
  const Outcome vehicles = convert({"train/train/x.jpg", "train/bus/y.jpg", "val/train/z.jpg"}, "vehicles");
  EXPECT_EQ(vehicles.code, 0) << vehicles.err;
  EXPECT_EQ(contents(root / "vehicles/classes.txt"), "1 bus\n2 train\n");
  EXPECT_TRUE(contains(vehicles.out, "validation: 1 images")) << vehicles.out;
  // Folders outside of the splits.
  const Outcome more = convert({"train/n01/a.jpg", "extra/n01/b.jpg", "train_old/n02/c.jpg", "d.jpg"}, "more");
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_TRUE(contains(more.out, "train: 1 images")) << more.out;
  for (const char* left :
       {"holds 1 extra images beside train/", "holds 1 train_old images", "holds 1 top-level images"})
    EXPECT_TRUE(contains(more.err, left)) << left << "\n" << more.err;
  // Alternative names of splits.
  const Outcome capitals = convert({"Training/n01/a.jpg", "validation/n01/b.jpg"}, "capitals");
  EXPECT_TRUE(contains(capitals.out, "train: 1 images")) << capitals.out << capitals.err;
  EXPECT_TRUE(contains(capitals.out, "validation: 1 images")) << capitals.out;
  place_images("Train");
  place_images("Testing");
  expect("imagenet --input in --shards 1 --output folders", 0, "in/Testing: used as validation data");
  // Splits without classes.
  const Outcome flat = convert({"train/1.jpg", "val/2.jpg"}, "flat");
  EXPECT_EQ(flat.code, 2);
  EXPECT_TRUE(contains(flat.err, "in the folder train of a split, without a folder of a class")) << flat.err;
}

TEST_F(DatasetFolders, FilesThatAreNoArchivesAreNamed) {
  place_file(root / "page.tar", "<!DOCTYPE html><html>404</html>");
  expect("imagenet --train_tar page.tar --output set", 2, "page.tar: not a tar archive but an HTML page");
  place_file(root / "pointer.tar", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  expect("imagenet --train_tar pointer.tar --output set", 2, "pointer.tar: not a tar archive but a Git LFS pointer");
}

TEST_F(DatasetFolders, KagglesFoldersOfImagenet) {
  const std::string inner = "ILSVRC/Data/CLS-LOC/";
  for (const char* name : {"train/n01/1.JPEG", "train/n02/2.JPEG", "val/v1.JPEG", "val/v2.JPEG", "test/t.JPEG"})
    place_file(root / "in" / (inner + name), small_jpeg());
  place_file(root / "in/LOC_synset_mapping.txt", "n02 goldfish\nn01 tench, Tinca tinca\n");
  place_file(root / "in/LOC_val_solution.csv", "ImageId,PredictionString\nv2,n01 1 2 3 4 \nv1,n02 1 2 3 4 \n");
  for (const std::string& input : {std::string("in"), "in/" + inner}) {
    const Outcome outcome = run("imagenet --input " + input + " --shards 1 --output set");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "Kaggle's folders: images in in/ILSVRC") || input != "in") << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "validation: 2 images in 1 shards")) << outcome.out;
  }
  expect("verify set", 0, "2 files, 4 records, 0 faults");
  EXPECT_EQ(contents(root / "set/classes.txt"), "1 n02 goldfish\n2 n01 tench, Tinca tinca\n");
  RecordReader reader((root / "set/validation-00000-of-00001").string());
  data::Example example;
  while (const auto record = reader.next()) {
    example.parse(record->bytes);
    EXPECT_EQ(example.int64("image/class/label"), example.bytes("image/filename") == "v1.JPEG" ? 1 : 2);
  }
  // Smaller records have the same labels.
  expect("resize --input set --output small --size 8", 0, "train: 2 images in 1 shards");
  EXPECT_EQ(contents(root / "small/classes.txt"), contents(root / "set/classes.txt"));
}

TEST_F(DatasetFolders, OtherFormsOfCifarAreNamed) {
  place_file(root / "in/data_batch_1", "\x80\x02}");
  place_file(root / "in/test_batch", "\x80\x02}");
  expect("cifar10 --input in --output set", 2, "in: holds CIFAR-10's Python batches, which are pickles and not read");
  place_file(root / "hundred/train.bin", std::string(3074, '\1'));
  place_file(root / "hundred/test.bin", std::string(3074, '\1'));
  expect("cifar10 --input hundred --output set", 2, "hundred: holds CIFAR-100's binary files");
}

}  // namespace
}  // namespace dtrain
