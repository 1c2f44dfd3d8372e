// dtrain-data imagenet on ImageNet's archives, and resize.
#include "dtrain/data/example.h"
#include "dtrain/data/image.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/tar_files.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// The same images in folders in/train/<class>, in/val and in archives.
class DatasetArchives : public DatasetProgram {
 protected:
  DatasetArchives() {
    std::vector<std::pair<std::string, std::string>> training, validation;
    for (const char* synset : {"n2", "n1"}) {
      std::vector<std::pair<std::string, std::string>> images;
      for (const int i : {3, 1, 2, 4}) {
        images.emplace_back(concat(synset, "_", i, ".JPEG"), small_jpeg(i));
        place_file(root / concat("in/train/", synset, "/", images.back().first), images.back().second);
      }
      training.emplace_back(concat(synset, ".tar"), tar_of(images));
    }
    for (const int i : {2, 1, 3}) {
      validation.emplace_back(concat("ILSVRC2012_val_0000000", i, ".JPEG"), small_jpeg(4 + i));
      place_file(root / "in/val" / validation.back().first, validation.back().second);
    }
    place_file(root / "train.tar", tar_of(training));
    place_file(root / "val.tar", tar_of(validation));
    place_file(root / "val.txt", "n2\nn1\nn2\n");
    place_file(root / "boxes.csv", "n1_2.JPEG,0.25,0.5,0.75,1\nother.JPEG,0,0,1,1\n");
  }
  const std::string flags = " --validation_labels val.txt --bounding_boxes boxes.csv --shards 4 --output ";
  const std::string archives = "imagenet --train_tar train.tar --val_tar val.tar --validation_labels val.txt ";
};

TEST_F(DatasetArchives, GiveTheShardsOfTheFolders) {
  expect("imagenet --input in" + flags + "folders", 0, "validation: 3 images in 1 shards");
  expect("imagenet --train_tar train.tar --val_tar val.tar" + flags + "tars", 0, "boxes of 1 of the 11 images");
  ASSERT_EQ(listing(root / "folders"), listing(root / "tars"));
  for (const std::string& name : listing(root / "tars"))
    EXPECT_EQ(contents(root / "folders" / name), contents(root / "tars" / name)) << name;
  expect("verify tars", 0, "5 files, 11 records, 0 faults");
  expect("inspect tars --threads 1", 0, "\"image/object/bbox/xmin\":{\"type\":\"float\",");
}

TEST_F(DatasetArchives, FaultsNameArchiveMemberAndOffset) {
  const std::string tar = contents(root / "train.tar");
  expect("imagenet --output out", 1, "--input is missing, or --train_tar");
  expect("imagenet --input in --train_tar train.tar --output out", 1, "exclude each other");
  expect("imagenet --val_tar val.tar --output out", 1, "--val_tar without --train_tar needs --labels");
  expect("imagenet --train_tar train.tar --val_tar val.tar --output out", 2,
         ": in no archive or folder of a class; give the classes of the images by --validation_labels");
  place_file(root / "val.txt", "490\n1\n2\n");
  expect(archives + "--output out", 2,
         "line 1: 490 is not one of the 2 classes; the numbers of ImageNet's development");
  place_file(root / "cut.tar", tar.substr(0, tar.size() / 2));
  expect("imagenet --train_tar cut.tar --output out", 2, "cut.tar: member at byte ");
  place_file(root / "classes.txt", "n1\n");
  expect("imagenet --train_tar train.tar --labels classes.txt --output out", 2,
         "classes.txt: has no line for n2, which has images");
  ASSERT_EQ(run("--version", "gzip -k train.tar;").code, 0);
  expect("imagenet --train_tar train.tar.gz --output out", 2, "train.tar.gz: member at byte 0: packed by gzip");
  EXPECT_FALSE(fs::exists(root / "out")) << "written before all was listed";
}

TEST_F(DatasetArchives, FailedConversionResumes) {
  std::string bad = contents(root / "train.tar");
  const size_t at = bad.find("\xff\xd8");  // of n2_3.JPEG, the first image
  const std::string good = bad;
  bad.replace(at, 2, "xx");
  place_file(root / "train.tar", bad);
  const auto time = fs::last_write_time(root / "train.tar");
  const std::string command = "imagenet --train_tar train.tar --shards 8 --threads 1 --output set --seed 3";
  const Outcome failed = run(command);
  EXPECT_EQ(failed.code, 2);
  EXPECT_TRUE(contains(failed.err, concat("train.tar: n2.tar: n2_3.JPEG at byte ", at, ": image of "))) << failed.err;
  EXPECT_TRUE(contains(failed.err, "complete stay in set/.shards.new: the same command resumes")) << failed.err;
  // Repaired in place, with equal size and time.
  place_file(root / "train.tar", good);
  fs::last_write_time(root / "train.tar", time);
  const Outcome mended = run(command);
  EXPECT_EQ(mended.code, 0) << mended.err;
  EXPECT_TRUE(contains(mended.err, "shards are complete in set/.shards.new: resuming after them")) << mended.err;
  expect(command + " --output whole", 0, "train: 8 images in 8 shards");
  ASSERT_EQ(listing(root / "set"), listing(root / "whole"));
  for (const std::string& name : listing(root / "set"))
    EXPECT_EQ(contents(root / "set" / name), contents(root / "whole" / name)) << name;
}

class DatasetResize : public DatasetProgram {
 protected:
  // Width and height of all images of a split, in order.
  std::string sizes(const std::string& folder, const std::string& split) const {
    std::string all;
    data::Example example;
    data::ImageDecoder decoder;
    for (const std::string& name : listing(root / folder)) {
      if (!name.starts_with(split + "-")) continue;
      RecordReader reader((root / folder / name).string());
      while (const auto record = reader.next()) {
        example.parse(record->bytes);
        const data::ImageInfo info = decoder.open(std::as_bytes(std::span(example.bytes("image/encoded"))));
        EXPECT_EQ(example.int64("image/width"), info.width);
        EXPECT_EQ(example.int64("image/height"), info.height);
        all += concat(info.width, "x", info.height, "/", example.int64("image/class/label"), " ");
      }
    }
    return all;
  }
};

TEST_F(DatasetResize, RecordsKeepTheirOrder) {
  expect(
      "synthesize --drawing solid --image_size 32 --max_image_size 40 --classes 3 --first_label 0 --train 6 "
      "--validation 2 --validation_shards 2 --shards 2 --output set",
      0, "validation: 2 images in 2 shards");
  const std::string before = sizes("set", "train");
  EXPECT_TRUE(contains(before, "/0 ")) << before;
  EXPECT_FALSE(contains(before, "/3 ")) << before;
  expect("resize --input set --size 100 --output same", 0, "train: 6 images in 2 shards");
  EXPECT_EQ(sizes("same", "train"), before);
  expect("resize --input set --size 16 --shards 3 --output small", 0, "train: 6 images in 3 shards");
  expect("verify small", 0, "6 files, 8 records, 0 faults, 0 damaged images");
  expect("resize --input set --size 16 --stretch --output square", 0, "validation: 2 images in 2 shards");
  EXPECT_EQ(sizes("square", "train"), "16x16/0 16x16/1 16x16/2 16x16/0 16x16/1 16x16/2 ");
  // In place.
  expect("resize --input set --size 16 --stretch --output set", 0, "train: 6 images in 2 shards");
  EXPECT_EQ(contents(root / "set/train-00001-of-00002"), contents(root / "square/train-00001-of-00002"));

  write_records(root / "bad/train-00000-of-00001", {image_record(small_jpeg()), image_record("no image")});
  expect("resize --input bad --output out", 2, "bad/train-00000-of-00001: record 1 at byte ");
  fs::remove(root / "square/train-00000-of-00002");
  expect("resize --input square --output out", 2, "square: train-00000-of-00002 is missing");
  expect("resize --input none --output out", 2, "none: cannot list");
  expect("resize --input set --output out --size 0", 1, "--size");
}

TEST_F(DatasetResize, FilesKeepTheirNames) {
  place_file(root / "in/train/n1/a.JPEG", text_of(data::encode_jpeg(data::Image(64, 48).view())));
  place_file(root / "in/train/n1/.hidden", "x");
  place_file(root / "in/val/b.JPEG", small_jpeg());
  expect("resize --input in --output out --size 24", 0, "2 images in out");
  EXPECT_EQ(listing(root / "out/train/n1"), std::vector<std::string>{"a.JPEG"});
  expect("resize --input out --output again", 0, "2 images in again");
  EXPECT_EQ(contents(root / "again/val/b.JPEG"), contents(root / "out/val/b.JPEG")) << "written anew for nothing";
  data::ImageDecoder decoder;
  const std::string bytes = contents(root / "out/train/n1/a.JPEG");
  EXPECT_EQ(decoder.open(std::as_bytes(std::span(bytes))).width, 32);
  expect("imagenet --input out --shards 1 --validation_labels labels.txt --output set", 2, "labels.txt");
  place_file(root / "in/readme.txt", "text");
  expect("resize --input in --output out", 2, "in/readme.txt: image of 4 bytes is no JPEG");
}

// As the test records of tf_cnn_benchmarks are.
TEST_F(DatasetResize, SolidImagesHaveTheGreyLevelOfTheirClass) {
  ASSERT_EQ(run("synthesize --drawing solid --image_size 30 --max_image_size 299 --train 20 --validation 4 --shards 8 "
                "--quality 100 --output set")
                .code,
            0);
  EXPECT_EQ(listing(root / "set").size(), 11u);
  data::Example example;
  data::ImageDecoder decoder;
  RecordReader reader((root / "set/train-00004-of-00008").string());
  while (const auto record = reader.next()) {
    example.parse(record->bytes);
    EXPECT_EQ(example.entries().size(), 15u);
    const data::ImageInfo info = decoder.open(std::as_bytes(std::span(example.bytes("image/encoded"))));
    EXPECT_TRUE(info.width >= 30 && info.width <= 299 && info.height >= 30 && info.height <= 299);
    EXPECT_EQ(decoder.decode().pixels[0], 255 * (example.int64("image/class/label") - 1) / 9);
    EXPECT_EQ(example.find("image/object/bbox/xmin")->count, 1u);
  }
  expect("verify set", 0, "10 files, 24 records, 0 faults");
}

}  // namespace
}  // namespace dtrain
