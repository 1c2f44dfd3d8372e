// DetectionDataset on TFRecords.
#include "data/detection_record.h"
#include "data/shards.h"
#include "tests/data/coco_folder.h"
#include "tests/data/detection_sample.h"

namespace dtrain::data {
namespace {

// The folder's images as records, in two shards.
void write_records(const CocoFolder& folder, const std::string& directory) {
  const auto source = open_coco(folder.annotations(), folder.folder());
  const auto reader = source->reader();
  write_shards({directory, 1}, {{"train", 2, source->size(), [&](uint64_t i) {
                                   const DetectionSample sample = reader->read(i, {});
                                   return detection_example({.encoded = sample.encoded,
                                                             .format = "png",
                                                             .filename = sample.name,
                                                             .id = sample.id,
                                                             .size = sample.size,
                                                             .objects = sample.objects,
                                                             .categories = source->categories()});
                                 }}});
}

TEST(DetectionRecords, SamplesEqualThoseOfImageFiles) {
  const CocoFolder folder;
  const TempDirectory records;
  write_records(folder, records.path().string());
  for (const std::vector<std::string>& classes : {std::vector<std::string>(), {"dog", "cat"}, {"dog"}}) {
    const auto stored = std::make_shared<DetectionDataset>(
        open_detection_records(records.path().string(), "train", {}, classes), small_canvases());
    const auto made = std::make_shared<DetectionDataset>(
        open_coco(folder.annotations(), folder.folder(), {.classes = classes}), small_canvases());
    ASSERT_EQ(stored->size(), made->size());
    EXPECT_EQ(stored->max_boxes(), made->max_boxes());
    EXPECT_EQ(stored->max_runs(), made->max_runs());
    EXPECT_EQ(stored->categories().size(), made->categories().size());
    EXPECT_EQ(stored->shard_begins().size(), 3u);
    DetectionDatasetOptions roomy = small_canvases();
    roomy.max_runs = made->max_runs();
    const DetectionDataset unsurveyed(open_detection_records(records.path().string(), "train", {}, classes), roomy);
    for (uint64_t i = 0; i < made->size(); ++i) {
      SeenSample from_record = read_sample(*stored, i, {.seed = 5, .sample = i});
      const SeenSample from_file = read_sample(*made, i, {.seed = 5, .sample = i});
      EXPECT_EQ(read_sample(unsurveyed, i, {.seed = 5, .sample = i}), from_record);
      ASSERT_EQ(from_record.boxes.size(), from_file.boxes.size());
      for (size_t k = 0; k < from_file.boxes.size(); ++k)
        EXPECT_NEAR(from_record.boxes[k], from_file.boxes[k], 1e-4) << "fractions are floats";
      from_record.boxes = from_file.boxes;
      EXPECT_EQ(from_record, from_file);
    }
  }
  expect_error([&] { open_detection_records(records.path().string(), "train", {}, {"dogs"}); }, Fault::data,
               "no object of the class 'dogs'; did you mean 'dog'?");
  EXPECT_TRUE(contains(DetectionDataset(open_detection_records(records.path().string(), "train", {}), {}).identity(),
                       "train-00001-of-00002"));
}

TEST(DetectionRecords, BadRecordCountsWhenRead) {
  const CocoFolder folder;
  const TempDirectory records;
  const auto source = open_coco(folder.annotations(), folder.folder());
  const auto reader = source->reader();
  write_shards({records.path().string(), 1},
               {{"train", 1, 2, [&](uint64_t i) {
                   const DetectionSample sample = reader->read(0, {});
                   return detection_example({.encoded = sample.encoded,
                                             .format = "png",
                                             .filename = "x",
                                             .id = 1,
                                             .size = {sample.size.height, sample.size.width + static_cast<int64_t>(i)},
                                             .objects = sample.objects,
                                             .categories = source->categories()},
                                            false);
                 }}});
  const auto dataset = std::make_shared<DetectionDataset>(open_detection_records(records.path().string(), "train", {}),
                                                          small_canvases());
  EXPECT_EQ(dataset->size(), 2u);
  EXPECT_EQ(read_sample(*dataset, 0).id, 1);
  expect_error([&] { read_sample(*dataset, 1); }, Fault::data, "image/width and image/height are 41x30");
  LoaderOptions options{.batch = 2, .workers = 1, .skip_bad_records = true};
  EXPECT_EQ(load(dataset, options, 3).size(), 6u);
}

TEST(DetectionRecords, ReadsTensorflowsRecords) {
  const std::filesystem::path path = test_data("tfrecord/object_detection/pets_examples.record");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "SKIPPED: " << path;
  const TempDirectory records;
  std::filesystem::create_symlink(path, records / "train-00000-of-00001");
  const DetectionDataset dataset(open_detection_records(records.path().string(), "train", {}), small_canvases());
  EXPECT_EQ(dataset.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    const SeenSample sample = read_sample(dataset, i);
    EXPECT_EQ(sample.id, static_cast<int64_t>(i)) << "its source_id is no number";
    expect_sound(sample, static_cast<int64_t>(dataset.categories().size()), /*masks=*/false);
  }
  EXPECT_TRUE(contains(dataset.notice_of_masks(), "objects without a mask, from which no mask is learnt: 10 (first: "))
      << dataset.notice_of_masks();
}

}  // namespace
}  // namespace dtrain::data
