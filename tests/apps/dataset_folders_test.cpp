// Folders and archives as other tools leave them: dtrain-data recognises them or says what it leaves out.
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
  EXPECT_TRUE(contains(outcome.err, "in/: left out, for only train and validation (or val, valid) are converted: test"))
      << outcome.err;
  fs::remove_all(root / "in/valid");
  expect("imagenet --input in --shards 1 --output other", 0, "in/test: is taken for the validation data");
  expect("verify other", 0, "2 files, 4 records, 0 faults");
}

TEST_F(DatasetFolders, WhatSystemsAddIsNoClassAndNoImage) {
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
  // Without a class below it `train` is one, as in Pascal VOC.
  place_file(root / "voc.tar", tar_of({{"train/1.jpg", small_jpeg(1)}, {"bus/2.jpg", small_jpeg(2)}}));
  expect("imagenet --train_tar voc.tar --shards 1 --output voc", 0, "train: 2 images in 1 shards");
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
