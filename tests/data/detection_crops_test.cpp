// DetectionDataset with SSD crops.
#include <set>

#include "dtrain/data/png.h"
#include "tests/data/coco_folder.h"
#include "tests/data/detection_sample.h"

namespace dtrain::data {
namespace {

constexpr ImageSize kStretched{60, 60};

DetectionDatasetOptions stretched() {
  DetectionDatasetOptions options;
  options.stretch = kStretched;
  options.masks = false;
  return options;
}

// The object is a white rectangle on black, from (30, 20) to (70, 60) of 100x80 pixels.
class WhiteRectangle {
 public:
  WhiteRectangle() {
    Image image(100, 80);
    for (int y = 20; y < 60; ++y) std::fill_n(image.pixels.begin() + 3 * (y * 100 + 30), 3 * 40, uint8_t{255});
    const std::vector<std::byte> file = encode_png(image.view());
    write_file(folder_ / "a.png", std::string(reinterpret_cast<const char*>(file.data()), file.size()));
    write_file(folder_ / "a.json",
               R"({"images":[{"id":1,"file_name":"a.png","width":100,"height":80}],)"
               R"("annotations":[{"id":1,"image_id":1,"category_id":3,"bbox":[30,20,40,40],"area":1600}],)"
               R"("categories":[{"id":3,"name":"car"}]})");
  }
  std::shared_ptr<DetectionDataset> open(const DetectionDatasetOptions& options) const {
    return std::make_shared<DetectionDataset>(open_coco((folder_ / "a.json").string(), folder_.path().string()),
                                              options);
  }

 private:
  TempDirectory folder_;
};

// Bounding box of pixels above half intensity.
std::array<float, 4> bounds_of_white(const SeenSample& sample) {
  std::array<float, 4> box{1e9f, 1e9f, -1, -1};
  for (int y = 0; y < kStretched.height; ++y)
    for (int x = 0; x < kStretched.width; ++x)
      if (sample.pixels[static_cast<size_t>(3 * (y * kStretched.width + x))] > 127) {
        box[0] = std::min(box[0], static_cast<float>(x));
        box[1] = std::min(box[1], static_cast<float>(y));
        box[2] = std::max(box[2], static_cast<float>(x + 1));
        box[3] = std::max(box[3], static_cast<float>(y + 1));
      }
  return box;
}

TEST(DetectionCrops, BoxesFollowTheCrop) {
  const WhiteRectangle data;
  DetectionDatasetOptions options = stretched();
  options.object_crops = true;
  const auto dataset = data.open(options);
  std::set<std::vector<float>> seen;
  for (uint64_t epoch = 0; epoch < 200; ++epoch) {
    const SeenSample sample = read_sample(*dataset, 0, {.seed = 1, .epoch = epoch});
    ASSERT_EQ(sample.classes, std::vector<int32_t>{1});
    const std::array<float, 4> white = bounds_of_white(sample);
    // Crops are whole source pixels, each up to 60 / 24 pixels of the sample.
    for (size_t i = 0; i < 4; ++i) ASSERT_NEAR(sample.boxes[i], white[i], 3.5) << "epoch " << epoch << ", side " << i;
    seen.insert(sample.boxes);
    EXPECT_EQ(sample, read_sample(*dataset, 0, {.seed = 1, .epoch = epoch}));
  }
  EXPECT_GT(seen.size(), 120u);
}

TEST(DetectionCrops, WithoutCropsImagesAreStretched) {
  const WhiteRectangle data;
  DetectionDatasetOptions options = stretched();
  options.flip_probability = 1;
  const SeenSample sample = read_sample(*data.open(options), 0);
  EXPECT_EQ(sample.boxes, (std::vector<float>{18, 15, 42, 45}));
  EXPECT_EQ(bounds_of_white(sample), (std::array<float, 4>{18, 15, 42, 45}));
  EXPECT_EQ(sample.sizes, (std::vector<float>{60, 60}));
  EXPECT_EQ(sample.originals, (std::vector<float>{80, 100}));
  EXPECT_TRUE(sample.ends.empty());
}

TEST(DetectionCrops, RequireStretchWithoutMasks) {
  const WhiteRectangle data;
  DetectionDatasetOptions options = stretched();
  options.object_crops = true;
  options.masks = true;
  expect_error([&] { data.open(options); }, Fault::config, "object_crops needs stretch and no masks");
  options = {};
  options.object_crops = true;
  expect_error([&] { data.open(options); }, Fault::config, "object_crops needs stretch and no masks");
  options = {};
  options.stretch = ImageSize{0, 60};
  expect_error([&] { data.open(options); }, Fault::config, "images stretched to 60x0 pixels");
}

TEST(DetectionCrops, AllShapesShareALayout) {
  const CocoFolder folder;
  DetectionDatasetOptions options = stretched();
  options.training = false;
  const DetectionDataset dataset(open_coco(folder.annotations(), folder.folder()), options);
  EXPECT_EQ(dataset.size(), 7u);
  EXPECT_EQ(dataset.layouts().size(), 1u);
  EXPECT_EQ(read_sample(dataset, 3).classes.size(), 0u);
}

}  // namespace
}  // namespace dtrain::data
