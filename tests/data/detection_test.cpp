#include "dtrain/data/detection.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "data/detection_masks.h"
#include "dtrain/data/resize.h"
#include "tests/data/coco_folder.h"
#include "tests/data/detection_sample.h"

namespace dtrain::data {
namespace {

std::shared_ptr<DetectionDataset> open_made(const CocoFolder& folder, const DetectionDatasetOptions& options) {
  return std::make_shared<DetectionDataset>(open_coco(folder.annotations(), folder.folder()), options);
}

TEST(Detection, TrainingSkipsImagesWithoutObjects) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  const auto ids = [&] {
    const auto dataset = open_made(folder, options);
    std::vector<int64_t> found;
    for (uint64_t i = 0; i < dataset->size(); ++i) {
      found.push_back(static_cast<int64_t>(dataset->locate(i).record));
      EXPECT_EQ(read_sample(*dataset, i).id, found.back());
      EXPECT_EQ(dataset->locate(i).file, folder.annotations());
    }
    EXPECT_EQ(dataset->shard_begins(), (std::vector<uint64_t>{0, found.size()}));
    return found;
  };
  EXPECT_EQ(ids(), (std::vector<int64_t>{3, 4, 5, 8, 9}));
  options.min_area = 159;
  EXPECT_EQ(ids(), (std::vector<int64_t>{3, 4, 5, 9}));
  options.keep_empty = true;
  EXPECT_EQ(ids(), (std::vector<int64_t>{3, 4, 5, 6, 7, 8, 9}));
  options = small_canvases();
  options.training = false;
  EXPECT_EQ(ids(), (std::vector<int64_t>{3, 4, 5, 6, 7, 8, 9}));
}

TEST(Detection, ImagesAreResizedFlippedAndPadded) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  options.resize.min_short_edge = 64;
  for (const float flip : {0.0f, 1.0f}) {
    options.flip_probability = flip;
    const auto dataset = open_made(folder, options);
    ASSERT_EQ(dataset->layouts().size(), 2u);
    const SeenSample sample = read_sample(*dataset, 0);
    EXPECT_EQ(sample.variant, "64x96");
    EXPECT_EQ(sample.sizes, (std::vector<float>{64, 85}));
    EXPECT_EQ(sample.originals, (std::vector<float>{30, 40}));
    const Image image = CocoFolder::image(3);
    Filter<float> x, y;
    make_half_pixel_filter({40, 85, 0, 85, flip == 1}, x);
    make_half_pixel_filter({30, 64, 0, 64, false}, y);
    std::vector<float> rows;
    std::vector<uint8_t> expected(64 * 96 * 3);
    resample(image.view(), x, y, rows, expected.data(), 96 * 3);
    EXPECT_EQ(sample.pixels, expected);
    EXPECT_EQ(read_sample(*dataset, 1).variant, "96x64") << "a portrait";
    EXPECT_EQ(read_sample(*dataset, 2).variant, "64x96") << "a square";
  }
}

// torchvision resizes floats.
TEST(Detection, PixelsMayStayUnrounded) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  options.resize = {.min_short_edge = 64, .max_short_edge = 64, .max_size = 96, .rounds_pixels = false};
  options.flip_probability = 1;
  const auto dataset = open_made(folder, options);
  const Batch batch = make_batch(dataset->layouts()[dataset->layout_of(0)], 1);
  dataset->reader()->read(0, {}, {batch, 0});
  const Image image = CocoFolder::image(3);
  Filter<float> x, y;
  make_half_pixel_filter({40, 85, 0, 85, true}, x, Coordinates::f32);
  make_half_pixel_filter({30, 64, 0, 64, false}, y, Coordinates::f32);
  std::vector<float> rows, expected(64 * 85 * 3);
  resample(image.view(), x, y, rows, expected.data());
  const auto found = row_values<float>(batch, DetectionFields::images, 0);
  ASSERT_EQ(found.size(), 64u * 96 * 3);
  bool fractions = false;
  for (size_t row = 0; row < 64; ++row)
    for (size_t i = 0; i < 96 * 3; ++i) {
      const float pixel = found[row * 96 * 3 + i];
      ASSERT_EQ(pixel, i < 85 * 3 ? expected[row * 85 * 3 + i] : 0) << row << ", " << i;
      fractions |= pixel != std::floor(pixel);
    }
  EXPECT_TRUE(fractions);
  // Brightness applies to the image, not to the padding.
  options.jitter.brightness = 0.5f;
  open_made(folder, options)->reader()->read(0, {}, {batch, 0});
  const auto brighter = row_values<float>(batch, DetectionFields::images, 0);
  std::set<int> differences;  // of unsaturated pixels
  for (size_t row = 0; row < 64; ++row)
    for (size_t i = 0; i < 96 * 3; ++i) {
      const float pixel = brighter[row * 96 * 3 + i];
      ASSERT_TRUE(pixel >= 0 && pixel <= 255 && (i < 85 * 3 || pixel == 0)) << row << ", " << i << ": " << pixel;
      if (i < 85 * 3 && pixel > 0 && pixel < 255)
        differences.insert(static_cast<int>(std::lround(100 * (pixel - found[row * 96 * 3 + i]))));
    }
  ASSERT_FALSE(differences.empty());
  EXPECT_LE(*differences.rbegin() - *differences.begin(), 1) << "in hundredths of a level";
  EXPECT_GT(std::abs(*differences.begin()), 10);
}

TEST(Detection, ObjectsFollowTheirImage) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  options.resize = {.min_short_edge = 60, .max_short_edge = 60, .max_size = 96};
  const coco::Annotations annotations = coco::parse_annotations(CocoFolder::json(), "made");
  for (const float flip : {0.0f, 1.0f}) {
    options.flip_probability = flip;
    const auto dataset = open_made(folder, options);
    EXPECT_EQ(dataset->max_boxes(), 2);
    EXPECT_EQ(dataset->categories()[0].name, "cat");
    const SeenSample sample = read_sample(*dataset, 0);
    EXPECT_EQ(sample.classes, (std::vector<int32_t>{1, 2})) << "in the order of their ids";
    EXPECT_EQ(sample.boxes, flip == 0 ? (std::vector<float>{4, 6, 36, 40, 40, 10, 80, 30})
                                      : (std::vector<float>{44, 6, 76, 40, 0, 10, 40, 30}))
        << "the second one clipped";
    std::vector<int32_t> ends;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(sample.begins[i], static_cast<int32_t>(ends.size()));
      append_runs(annotations.of(0)[i], {{30, 40}, {60, 80}, flip == 1}, ends);
    }
    EXPECT_EQ(sample.ends, ends);
    EXPECT_EQ(sample.begins.back(), static_cast<int32_t>(ends.size()));
    EXPECT_EQ(read_sample(*dataset, 2).classes.size(), 1u) << "no crowd";
    EXPECT_EQ(read_sample(*dataset, 3).classes, (std::vector<int32_t>{1})) << "none that is too small";
  }
}

TEST(Detection, SelectsRequestedClasses) {
  const CocoFolder folder;
  const DetectionDataset dataset(open_coco(folder.annotations(), folder.folder(), {.classes = {"dog"}}),
                                 small_canvases());
  EXPECT_EQ(dataset.size(), 2u);
  EXPECT_EQ(read_sample(dataset, 0).classes, (std::vector<int32_t>{1}));
  expect_error([&] { open_coco(folder.annotations(), folder.folder(), {.classes = {"dig"}}); }, Fault::data, "dog");
}

TEST(Detection, EvaluationDoesNotAugment) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  options.training = false;
  options.flip_probability = 1;
  const auto dataset = open_made(folder, options);
  std::set<int64_t> ids;
  for (const SeenSample& sample : load(dataset, {.batch = 2, .training = false, .workers = 2}, 5)) {
    ids.insert(sample.id);
    EXPECT_TRUE(sample.classes.empty());
    EXPECT_TRUE(sample.ends.empty());
    EXPECT_EQ(std::min(sample.sizes[0], sample.sizes[1]), sample.id == 9                     ? 40
                                                          : sample.id == 6 || sample.id == 7 ? 48
                                                                                             : 64);
  }
  EXPECT_EQ(ids, (std::set<int64_t>{3, 4, 5, 6, 7, 8, 9}));
}

TEST(Detection, SamplesDependOnSeedEpochAndIndexOnly) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  options.jitter = {.brightness = 0.1f, .contrast = 0.2f, .saturation = 0.3f, .hue = 0.05f};
  const auto dataset = open_made(folder, options);
  const std::vector<SeenSample> one = load(dataset, {.batch = 4, .seed = 3, .workers = 1}, 10);
  EXPECT_EQ(load(dataset, {.batch = 4, .seed = 3, .workers = 3}, 10), one);
  EXPECT_EQ(load(dataset, {.batch = 2, .seed = 3, .ranks = 2, .workers = 2}, 10), one);
  std::set<float> edges;
  std::set<bool> mirrored;
  for (const SeenSample& sample : one) {
    if (sample.id != 4) continue;
    edges.insert(sample.sizes[1]);
    mirrored.insert(sample.boxes[0] > 0.2f * sample.sizes[1]);
  }
  EXPECT_GT(edges.size(), 4u);
  EXPECT_GE(*edges.begin(), 40);
  EXPECT_LE(*edges.rbegin(), 64);
  EXPECT_EQ(mirrored.size(), 2u);
}

TEST(Detection, ColourJitterSparesPadding) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  const SeenSample plain = read_sample(*open_made(folder, options), 0);
  options.jitter.brightness = 0.3f;
  const SeenSample bright = read_sample(*open_made(folder, options), 0);
  EXPECT_EQ(bright.boxes, plain.boxes);
  std::set<int> differences;
  for (size_t i = 0; i < plain.pixels.size(); ++i) {
    const size_t x = i / 3 % 96, y = i / 3 / 96;
    if (x >= static_cast<size_t>(plain.sizes[1]) || y >= static_cast<size_t>(plain.sizes[0]))
      ASSERT_EQ(bright.pixels[i], 0);
    else if (bright.pixels[i] > 0 && bright.pixels[i] < 255)
      differences.insert(bright.pixels[i] - plain.pixels[i]);
  }
  EXPECT_LE(differences.size(), 2u) << "all by the same amount, rounded";
  EXPECT_NE(*differences.begin(), 0);
}

TEST(Detection, ExceedingCapacityIsABadRecord) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  options.max_boxes = 1;
  expect_error([&] { read_sample(*open_made(folder, options), 0); }, Fault::data,
               "image im3.png: 2 objects, more than max_boxes = 1");
  EXPECT_EQ(read_sample(*open_made(folder, options), 1).classes.size(), 1u);
  options.max_boxes = 5;
  options.max_runs = 10;
  expect_error([&] { read_sample(*open_made(folder, options), 0); }, Fault::data, "more than max_runs = 10");
  options.max_runs = 0;
  EXPECT_EQ(open_made(folder, options)->max_boxes(), 5);
}

TEST(Detection, ReportsImageErrors) {
  const CocoFolder folder;
  const auto dataset = open_made(folder, small_canvases());
  std::filesystem::copy_file(folder.folder() + "/im4.png", folder.folder() + "/im3.png",
                             std::filesystem::copy_options::overwrite_existing);
  expect_error([&] { read_sample(*dataset, 0); }, Fault::data,
               "image im3.png: is 30x40 pixels large, its annotations are for 40x30");
  write_file(folder.folder() + "/im3.png", "GIF89.");
  expect_error([&] { read_sample(*dataset, 0); }, Fault::data, "image im3.png: image of 6 bytes is no JPEG, PNG, BMP");
  std::filesystem::remove(folder.folder() + "/im3.png");
  expect_error([&] { read_sample(*dataset, 0); }, Fault::data, "im3.png");
}

TEST(Detection, IdentityCoversFilesAndOptions) {
  const CocoFolder folder;
  DetectionDatasetOptions options = small_canvases();
  const std::string some = open_made(folder, options)->identity();
  EXPECT_TRUE(contains(some, "instances_train2017.json: ")) << some;
  EXPECT_TRUE(contains(some, "5 of 7 images")) << some;
  options.keep_empty = true;
  EXPECT_NE(open_made(folder, options)->identity(), some);
}

TEST(Detection, RejectsOptionsOutOfRange) {
  const CocoFolder folder;
  const auto refuses = [&](auto change, const std::string& part) {
    DetectionDatasetOptions options = small_canvases();
    change(options);
    expect_error([&] { open_made(folder, options); }, Fault::config, part);
  };
  refuses([](DetectionDatasetOptions& o) { o.multiple = 0; }, "multiples of 0");
  refuses([](DetectionDatasetOptions& o) { o.flip_probability = 1.5f; }, "probability 1.5");
  refuses([](DetectionDatasetOptions& o) { o.jitter.hue = 0.6f; }, "colour jitter of");
  refuses([](DetectionDatasetOptions& o) { o.max_boxes = -1; }, "capacity for -1 boxes");
  refuses([](DetectionDatasetOptions& o) { o.canvases = {{64, 90}}; }, "which no canvas holds");
  refuses([](DetectionDatasetOptions& o) { o.canvases = {{64, 0}}; }, "a canvas of 0x64");
  expect_error([] { DetectionDataset(nullptr, {}); }, Fault::config, "without a source");
}

TEST(Detection, ReadsCoco) {
  const std::filesystem::path root = test_data("coco_mini");
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "SKIPPED: " << root;
  const auto source =
      open_coco((root / "annotations/instances_train2017.json").string(), (root / "train2017").string());
  const auto dataset = std::make_shared<DetectionDataset>(
      source, DetectionDatasetOptions{.resize = {.min_short_edge = 200, .max_short_edge = 320, .max_size = 480}});
  EXPECT_EQ(dataset->categories().size(), 80u);
  EXPECT_EQ(source->size(), 80u);
  for (const SeenSample& sample : load(dataset, {.batch = 4, .seed = 1, .workers = 2}, 40)) expect_sound(sample, 80);
}

TEST(Detection, ReadsNuclei) {
  const std::filesystem::path root = test_data("nuclei");
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "SKIPPED: " << root;
  const auto source = open_coco((root / "annotations/instances_val2018.json").string(), (root / "val2018").string());
  const auto dataset = std::make_shared<DetectionDataset>(
      source, DetectionDatasetOptions{.resize = {.min_short_edge = 200, .max_short_edge = 512, .max_size = 512}});
  EXPECT_EQ(dataset->layouts().size(), 1u);
  EXPECT_GT(dataset->max_boxes(), 50);
  for (const SeenSample& sample : load(dataset, {.batch = 7, .seed = 1, .workers = 2}, 14)) expect_sound(sample, 1);
}

}  // namespace
}  // namespace dtrain::data
