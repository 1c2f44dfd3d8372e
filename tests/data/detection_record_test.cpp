#include "data/detection_record.h"

#include <cmath>
#include <limits>

#include "dtrain/data/png.h"
#include "dtrain/io/record_file.h"
#include "tests/data/noise.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

using FloatLists = std::vector<std::pair<const char*, std::vector<float>>>;

const std::vector<coco::Category> kTwoCategories = {{18, "dog"}, {44, "bottle"}};

std::vector<coco::Annotation> three_objects() {
  const std::vector<uint8_t> pixels = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  return {{.category = 1,
           .area = 3.5,
           .box = {1, 0.5, 2.25, 3},
           .segmentation = coco::Polygons{{1, .5, 3.25, 3.5, 1, 3.5}, {0, 0, 1, 1, 2, 0}}},
          {.category = 0, .is_crowd = true, .area = 4, .box = {0, 1, 4, 2}, .segmentation = coco::encode(pixels, 4, 5)},
          {.category = 0, .area = 6, .box = {3, 2, 9, 9}}};
}

std::string record_of_three(std::span<const std::byte> png, bool masks = true) {
  const std::vector<coco::Annotation> objects = three_objects();
  return detection_example({.encoded = png,
                            .format = "png",
                            .filename = "a/b.png",
                            .id = 17,
                            .size = {4, 5},
                            .objects = objects,
                            .categories = kTwoCategories},
                           masks);
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(DetectionRecord, RoundTrip) {
  const std::vector<std::byte> png = encode_png(noise(5, 4, 1).view());
  const std::string bytes = record_of_three(png);
  DetectionRecordReader reader;
  const DetectionRecord& record = reader.read(bytes_of(bytes));
  EXPECT_TRUE(std::ranges::equal(record.encoded, png));
  EXPECT_EQ(record.id(), 17);
  EXPECT_EQ(record.filename, "a/b.png");
  EXPECT_EQ(record.height, 4);
  EXPECT_EQ(record.width, 5);
  const std::vector<coco::Annotation> expected = three_objects();
  ASSERT_EQ(record.objects.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const DetectionRecord::Object& object = record.objects[i];
    const coco::Category& category = kTwoCategories[expected[i].category];
    EXPECT_EQ(object.label, category.id);
    EXPECT_EQ(object.text, category.name);
    EXPECT_EQ(object.is_crowd, expected[i].is_crowd);
    EXPECT_EQ(object.area, expected[i].area);
    EXPECT_EQ(segmentation_of(object, 4, 5), expected[i].segmentation);
    EXPECT_NEAR(object.box.x, expected[i].box.x, 1e-6);
    EXPECT_NEAR(object.box.y, expected[i].box.y, 1e-6);
  }
  EXPECT_NEAR(record.objects[0].box.width, 2.25, 1e-6);
  EXPECT_NEAR(record.objects[2].box.width, 2, 1e-6) << "clipped to the image";
  EXPECT_NEAR(record.objects[2].box.height, 2, 1e-6);
}

// Other readers use image/object/mask, a grey PNG of zeros and ones; so do we if there is no segmentation.
TEST(DetectionRecord, SupportsPngMasks) {
  const std::string bytes = record_of_three(encode_png(noise(5, 4, 1).view()));
  DetectionRecordReader reader;
  DetectionRecord record = reader.read(bytes_of(bytes));
  const std::vector<coco::Annotation> expected = three_objects();
  EXPECT_TRUE(record.objects[2].mask.empty());
  for (size_t i = 0; i < 2; ++i) {
    DetectionRecord::Object& object = record.objects[i];
    const auto png = std::as_bytes(std::span(object.mask));
    EXPECT_EQ(std::to_integer<int>(png[24]), 8) << "bits";
    EXPECT_EQ(std::to_integer<int>(png[25]), 0) << "grey";
    const coco::Rle mask = coco::mask_of(expected[i], 4, 5);
    ImageDecoder decoder;
    decoder.open(png);
    const ImageView view = decoder.decode();
    const std::vector<uint8_t> pixels = coco::decode(mask);
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) EXPECT_EQ(view.row(y)[3 * x], pixels[static_cast<size_t>(5 * y + x)]);
    object.segmentation = {};
    EXPECT_EQ(std::get<coco::Rle>(segmentation_of(object, 4, 5)), mask);
    expect_error([&] { segmentation_of(object, 5, 4); }, Fault::data, "a mask of 5x4 pixels in an image of 4x5");
  }
}

TEST(DetectionRecord, MasksAreOptional) {
  const std::string bytes = record_of_three(encode_png(noise(5, 4, 1).view()), false);
  DetectionRecordReader reader;
  const DetectionRecord& record = reader.read(bytes_of(bytes));
  for (const DetectionRecord::Object& object : record.objects)
    EXPECT_TRUE(std::holds_alternative<std::monostate>(segmentation_of(object, 4, 5)));
}

struct RecordParts {
  int64_t height = 4, width = 5;
  FloatLists floats{{"image/object/bbox/xmin", {.1f, .2f}},
                    {"image/object/bbox/xmax", {.5f, .6f}},
                    {"image/object/bbox/ymin", {.1f, .2f}},
                    {"image/object/bbox/ymax", {.5f, .6f}}};
  std::vector<int64_t> labels{3, 4}, crowd{0, 1};
  std::vector<std::string_view> masks{};
  std::string_view source_id = "12";

  std::string bytes() const {
    const std::vector<std::byte> png = encode_png(noise(5, 4, 1).view());
    ExampleWriter writer;
    writer.bytes("image/encoded", {reinterpret_cast<const char*>(png.data()), png.size()});
    writer.int64("image/height", height);
    writer.int64("image/width", width);
    writer.bytes("image/source_id", source_id);
    for (const auto& [key, values] : floats) writer.floats(key, values);
    writer.int64s("image/object/class/label", labels);
    if (!crowd.empty()) writer.int64s("image/object/is_crowd", crowd);
    if (!masks.empty()) writer.bytes("image/object/mask", masks);
    return writer.take();
  }
};

TEST(DetectionRecord, OptionalListsHaveDefaults) {
  RecordParts parts;
  parts.crowd = {};
  parts.source_id = "x12.jpg";
  const std::string bytes = parts.bytes();
  DetectionRecordReader reader;
  const DetectionRecord& record = reader.read(bytes_of(bytes));
  EXPECT_EQ(record.id(), std::nullopt);
  ASSERT_EQ(record.objects.size(), 2u);
  EXPECT_FALSE(record.objects[1].is_crowd);
  EXPECT_NEAR(record.objects[0].area, .4 * 5 * .4 * 4, 1e-5);
}

TEST(DetectionRecord, RejectsInvalidRecords) {
  const auto refuses = [](auto change, const std::string& part) {
    RecordParts parts;
    change(parts);
    const std::string bytes = parts.bytes();
    DetectionRecordReader reader;
    expect_error([&] { reader.read(bytes_of(bytes)); }, Fault::data, part);
  };
  refuses([](RecordParts& p) { p.height = 5; }, "image/width and image/height are 5x5, the image is 5x4");
  refuses([](RecordParts& p) { p.labels = {3}; }, "image/object/bbox/xmin has 2 values, expected one for each of 1");
  refuses([](RecordParts& p) { p.floats[2].second = {.1f}; }, "image/object/bbox/ymin has 1 values");
  refuses([](RecordParts& p) { p.crowd = {0, 0, 0}; }, "image/object/is_crowd has 3 values");
  refuses([](RecordParts& p) { p.crowd = {0, 2}; }, "image/object/is_crowd is 2");
  refuses([](RecordParts& p) { p.masks = {"x"}; }, "image/object/mask has 1 values");
  refuses([](RecordParts& p) { p.floats[0].second = {.1f, .7f}; }, "bounding box 1 is ymin 0.2 xmin 0.7");
  refuses([](RecordParts& p) { p.floats[1].second = {.5f, 120}; }, "expected min <= max, as fractions");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  refuses([=](RecordParts& p) { p.floats[3].second = {nan, .6f}; }, "bounding box 0");
  refuses([](RecordParts& p) { p.floats.push_back({"image/object/area", {1, -1}}); }, "image/object/area is -1");
  refuses([=](RecordParts& p) { p.floats.push_back({"image/object/area", {nan, 1}}); }, "image/object/area is nan");
  refuses(
      [](RecordParts& p) {
        p.floats.push_back({"image/object/class/text", {1, 1}});
      },
      "feature image/object/class/text holds float values, expected bytes");
}

TEST(DetectionRecord, RejectsInvalidSegmentations) {
  const auto refuses = [](const std::string& segmentation, const std::string& part) {
    expect_error([&] { segmentation_of({.segmentation = segmentation}, 4, 5); }, Fault::data, part);
  };
  refuses("Q", "begins with neither R nor P");
  refuses("P", "without polygons");
  refuses(std::string("P\6\0\0", 4), "a polygon");
  refuses(std::string("P\5\0\0\0", 5) + std::string(40, '\0'), "a polygon of 5 coordinates");
  refuses(std::string("P\6\0\0\0", 5) + std::string(47, '\0'), "a polygon of 6 coordinates in 47 bytes");
  refuses(std::string("P\6\0\0\0", 5) + std::string(48, '\xff'), "a polygon with the coordinate");
  refuses("R0", "");
}

TEST(DetectionRecord, ReadsTensorflowRecords) {
  const std::filesystem::path path = test_data("tfrecord/object_detection/pets_examples.record");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "SKIPPED: " << path;
  RecordReader file(path.string());
  DetectionRecordReader reader;
  int records = 0;
  while (const auto record = file.next()) {
    const DetectionRecord& image = reader.read(record->bytes);
    ++records;
    EXPECT_EQ(image.id(), std::nullopt);
    ASSERT_EQ(image.objects.size(), 1u);
    EXPECT_GT(image.objects[0].label, 0);
    EXPECT_FALSE(image.objects[0].text.empty());
    EXPECT_GT(image.objects[0].area, 100);
  }
  EXPECT_EQ(records, 10);
}

}  // namespace
}  // namespace dtrain::data
