// dtrain-data coco, and the other commands on its records.
#include <nlohmann/json.hpp>

#include "data/detection_record.h"
#include "dtrain/data/example.h"
#include "dtrain/data/image.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/coco_folder.h"
#include "tests/data/exif.h"
#include "tests/data/image_files.h"

namespace dtrain {
namespace {

class DatasetCoco : public DatasetProgram {
 protected:
  const data::CocoFolder coco;
  const std::string command = "coco --input '" + coco.root() + "' --output out --shards 2 ";
};

TEST_F(DatasetCoco, ImagesBecomeRecordsOfTensorflowsSchema) {
  expect(command, 0, "train: 7 images in 2 shards, out/train-*-of-00002");
  expect("verify out", 0, "3 files, 14 records, 0 faults, 0 damaged images");
  std::vector<int64_t> ids;
  for (const char* name : {"train-00000-of-00002", "train-00001-of-00002"}) {
    RecordReader reader((root / "out" / name).string());
    data::DetectionRecordReader parser;
    while (const auto record = reader.next()) {
      const data::DetectionRecord& image = parser.read(record->bytes);
      ids.push_back(image.id().value_or(-1));
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(image.encoded.data()), image.encoded.size()),
                contents(std::filesystem::path(coco.folder()) / image.filename));
    }
  }
  EXPECT_FALSE(std::is_sorted(ids.begin(), ids.end())) << "shuffled";
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<int64_t>{3, 4, 5, 6, 7, 8, 9}));
  const Outcome outcome = run("inspect out/validation-00000-of-00001");
  const auto keys = nlohmann::json::parse(outcome.out)["keys"];
  for (const char* key : {"image/object/class/label", "image/object/mask", "image/object/segmentation"})
    EXPECT_EQ(keys[key]["values"], 9) << key;
}

TEST_F(DatasetCoco, MasksMayBeLeftOutAndASplitMissing) {
  std::filesystem::remove(coco.annotations("val"));
  ASSERT_EQ(run(command + "--nomasks --threads 1").code, 0);
  EXPECT_EQ(listing(root / "out"),
            (std::vector<std::string>{".shards", "train-00000-of-00002", "train-00001-of-00002"}));
  EXPECT_EQ(run("inspect out").out.find("image/object/mask"), std::string::npos);
  expect("verify out", 0, "2 files, 7 records, 0 faults");
}

TEST_F(DatasetCoco, OtherFormatsBecomeJpegs) {
  place_file(root / "in/train2017/a.jpg", text_of(data::file_of("webp, orientation 6")));
  place_file(root / "in/annotations/instances_train2017.json",
             R"({"images":[{"id":1,"file_name":"a.jpg","width":13,"height":11}],"annotations":[],)"
             R"("categories":[{"id":5,"name":"cat"}]})");
  expect("coco --input in --output out --shards 1", 0, "train: 1 images in 1 shards");
  RecordReader reader((root / "out/train-00000-of-00001").string());
  data::Example example;
  example.parse(reader.next()->bytes);
  EXPECT_EQ(example.bytes("image/format"), "jpeg");
  const data::ImageInfo info = data::ImageDecoder().open(std::as_bytes(std::span(example.bytes("image/encoded"))));
  EXPECT_EQ(info.format, data::ImageFormat::jpeg);
  EXPECT_EQ(info.orientation, 6);
}

TEST_F(DatasetCoco, AnnotationsOfOtherSplitsAreNamed) {
  const std::filesystem::path annotations = std::filesystem::path(coco.root()) / "annotations";
  for (const char* name : {"instances_minival2014.json", "instances_valminusminival2014.json"})
    std::filesystem::copy_file(annotations / "instances_train2017.json", annotations / name);
  expect(command, 0, "annotations: not converted: instances_minival2014.json, instances_valminusminival2014.json");
}

TEST_F(DatasetCoco, FaultsNameTheFile) {
  const std::filesystem::path annotations = std::filesystem::path(coco.root()) / "annotations";
  expect("coco --input none --output out", 2, "none/annotations: cannot be listed");
  std::filesystem::copy_file(annotations / "instances_train2017.json", annotations / "instances_train2014.json");
  expect(command, 2, "instances_train2014.json and instances_train2017.json; choose one by --year");
  expect(command + "--year 2014", 2, "instances_train2014.json: no folder ");
  expect(command + "--year 2015", 2, "neither instances_train2015*.json nor instances_val2015*.json");
  write_file(coco.folder() + "/im4.png", contents(coco.folder() + "/im3.png"));
  expect(command + "--year 2017", 2, "im4.png: is 40x30 pixels large");
  write_file(coco.folder() + "/im4.png", "GIF89.");
  expect(command + "--year 2017", 2, "train2017/im4.png: image of 6 bytes is no JPEG, PNG, BMP");
  write_file(coco.annotations("train"), "{}");
  expect(command + "--year 2017", 2, "instances_train2017.json: ");
  EXPECT_FALSE(std::filesystem::exists(root / "out" / "train-00000-of-00002"));
}

// Readers of records rely on the stored size.
TEST_F(DatasetCoco, ImagesThatAreAnnotatedUprightAreTurned) {
  const auto jpeg = with_orientation(data::encode_jpeg(data::noise(40, 30, 1).view()), 6);
  write_file(coco.folder() + "/im4.png", text_of(jpeg));       // 30x40 by the annotations
  write_file(coco.folder("val") + "/im3.png", text_of(jpeg));  // as it is stored
  expect(command, 0, "1 images were rotated by their EXIF orientation");
  expect("verify out", 0, "3 files, 14 records, 0 faults, 0 damaged images");
  data::DetectionRecordReader parser;
  data::ImageDecoder decoder, turning({.orientation = data::Orientation::apply});
  turning.open(jpeg);
  const data::ImageView upright = turning.decode();
  for (const char* name : {"train-00000-of-00002", "train-00001-of-00002"}) {
    RecordReader reader((root / "out" / name).string());
    while (const auto record = reader.next()) {
      const data::DetectionRecord& image = parser.read(record->bytes);
      if (image.id() != 4) continue;
      const data::ImageInfo info = decoder.open(image.encoded);
      EXPECT_EQ(concat(info.width, "x", info.height, " turned ", info.orientation), "30x40 turned 1");
      const data::ImageView found = decoder.decode();
      for (int x = 0; x < 3 * 30; ++x) EXPECT_NEAR(found.row(7)[x], upright.row(7)[x], 12) << x;
    }
  }
  RecordReader reader((root / "out/validation-00000-of-00001").string());
  while (const auto record = reader.next()) {
    const data::DetectionRecord& image = parser.read(record->bytes);
    if (image.id() == 3) {
      EXPECT_EQ(image.encoded.size(), jpeg.size()) << "keeps its bytes";
    }
  }
}

TEST_F(DatasetCoco, VerifyLooksIntoMasks) {
  const std::vector<std::byte> png = data::encode_png(data::noise(5, 4, 1).view());
  const std::vector<uint8_t> pixels(6);
  const std::string small = text_of(data::encode_grey_png(pixels, 3, 2));
  const std::vector<float> low = {0.1f}, high = {0.9f};
  const auto record = [&](const char* key, std::string_view mask) {
    data::ExampleWriter example;
    example.bytes("image/encoded", text_of(png));
    example.int64("image/height", 4);
    example.int64("image/width", 5);
    example.int64("image/object/class/label", 1);
    for (const char* edge : {"xmin", "ymin"}) example.floats(concat("image/object/bbox/", edge), low);
    for (const char* edge : {"xmax", "ymax"}) example.floats(concat("image/object/bbox/", edge), high);
    example.bytes(key, mask);
    return example.take();
  };
  write_records(root / "x.record", {record("image/object/mask", small), record("image/object/mask", "no png"),
                                    record("image/object/segmentation", "R!"), record("image/filename", "sound")});
  const Outcome outcome = run("verify x.record");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.out, "record 0 at byte 0: a mask of 3x2 pixels in an image of 5x4")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "image of 6 bytes is no JPEG, PNG, BMP")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "4 records, 3 faults")) << outcome.out;
}

TEST_F(DatasetCoco, RealImages) {
  const auto mini = test_data("coco_mini");
  if (!std::filesystem::exists(mini)) GTEST_SKIP() << "SKIPPED: " << mini;
  expect("coco --input '" + mini.string() + "' --output out --shards 4", 0, "train: 80 images in 4 shards");
  expect("verify out", 0, "5 files, 130 records, 0 faults, 0 damaged images");
}

}  // namespace
}  // namespace dtrain
