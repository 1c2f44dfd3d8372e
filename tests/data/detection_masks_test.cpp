#include "data/detection_masks.h"

#include <cmath>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

coco::Rle rle_of_ends(const std::vector<int32_t>& ends, const ImageSize& size) {
  coco::Rle rle{size.height, size.width};
  int32_t before = 0;
  for (const int32_t end : ends) {
    EXPECT_TRUE(end > before || (before == 0 && rle.counts.empty())) << "runs have pixels, but for the first";
    rle.counts.push_back(static_cast<uint32_t>(end - before));
    before = end;
  }
  EXPECT_EQ(before, size.height * size.width);
  return rle;
}

// Blobs and specks.
coco::Annotation random_mask(const ImageSize& size, uint64_t seed) {
  RandomStream random(seed, 1);
  std::vector<uint8_t> pixels(static_cast<size_t>(size.height * size.width), random.below(4) == 0);
  for (int i = 0; i < 12; ++i) {
    const auto top = random.below(static_cast<uint32_t>(size.height));
    const auto left = random.below(static_cast<uint32_t>(size.width));
    const auto high = 1 + random.below(6), wide = 1 + random.below(6), value = random.below(3);
    for (int64_t y = top; y < std::min<int64_t>(top + high, size.height); ++y)
      for (int64_t x = left; x < std::min<int64_t>(left + wide, size.width); ++x)
        pixels[static_cast<size_t>(y * size.width + x)] = value != 0;
  }
  return {.segmentation = coco::encode(pixels, size.height, size.width)};
}

coco::Annotation random_polygons(const ImageSize& size, uint64_t seed) {
  RandomStream random(seed, 2);
  coco::Polygons polygons(1 + random.below(3));
  for (std::vector<double>& polygon : polygons)
    for (uint32_t corner = 0, corners = 3 + random.below(9); corner < corners; ++corner) {
      polygon.push_back(double{random.uniform(-3, static_cast<float>(size.width) + 3)});
      polygon.push_back(double{random.uniform(-3, static_cast<float>(size.height) + 3)});
    }
  return {.segmentation = polygons};
}

std::vector<uint8_t> mirrored_mask(const std::vector<uint8_t>& pixels, const ImageSize& size) {
  std::vector<uint8_t> out(pixels.size());
  for (int64_t y = 0; y < size.height; ++y)
    for (int64_t x = 0; x < size.width; ++x)
      out[static_cast<size_t>(y * size.width + x)] = pixels[static_cast<size_t>((y + 1) * size.width - 1 - x)];
  return out;
}

const std::vector<std::pair<ImageSize, ImageSize>> kResizes = {
    {{13, 17}, {13, 17}}, {{13, 17}, {29, 40}}, {{23, 31}, {10, 8}}, {{1, 1}, {5, 7}},
    {{9, 7}, {1, 1}},     {{8, 12}, {4, 6}},    {{8, 9}, {8, 36}}};

TEST(DetectionMasks, RleIsResampledToNearestPixel) {
  for (const auto& [from, to] : kResizes)
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const coco::Annotation object = random_mask(from, seed);
      const std::vector<uint8_t> source = coco::decode(std::get<coco::Rle>(object.segmentation));
      std::vector<uint8_t> expected;
      for (int64_t y = 0; y < to.height; ++y)
        for (int64_t x = 0; x < to.width; ++x)
          expected.push_back(source[static_cast<size_t>((2 * y + 1) * from.height / (2 * to.height) * from.width +
                                                        (2 * x + 1) * from.width / (2 * to.width))]);
      std::vector<int32_t> ends, turned;
      append_runs(object, {from, to, false}, ends);
      EXPECT_EQ(coco::decode(rle_of_ends(ends, to)), expected);
      EXPECT_LE(ends.size(), most_runs(object, {from, to}));
      append_runs(object, {from, to, true}, turned);
      EXPECT_LE(turned.size(), most_runs(object, {from, to}));
      EXPECT_EQ(coco::decode(rle_of_ends(turned, to)), mirrored_mask(expected, to));
    }
}

TEST(DetectionMasks, PolygonsAreScaledFlippedAndRasterised) {
  for (const auto& [from, to] : kResizes)
    for (uint64_t seed = 0; seed < 20; ++seed)
      for (const bool flip : {false, true}) {
        const coco::Annotation object = random_polygons(from, seed);
        const double sx = static_cast<double>(to.width) / static_cast<double>(from.width);
        const double sy = static_cast<double>(to.height) / static_cast<double>(from.height);
        coco::Polygons polygons = std::get<coco::Polygons>(object.segmentation);
        for (std::vector<double>& polygon : polygons)
          for (size_t i = 0; i < polygon.size(); i += 2) {
            polygon[i] = flip ? static_cast<double>(to.width) - polygon[i] * sx : polygon[i] * sx;
            polygon[i + 1] *= sy;
          }
        std::vector<int32_t> ends;
        append_runs(object, {from, to, flip}, ends);
        std::vector<coco::Rle> parts;
        for (const std::vector<double>& polygon : polygons)
          parts.push_back(coco::from_polygon(polygon, to.height, to.width));
        EXPECT_EQ(coco::decode(rle_of_ends(ends, to)), coco::decode(coco::merge(parts)));
        EXPECT_LE(ends.size(), most_runs(object, {from, to}));
      }
}

// Pixel i is pixel floor(i * from / to) of the flipped mask, in single precision.
std::vector<uint8_t> resized_as_torch(const std::vector<uint8_t>& pixels, const ImageSize& from, const ImageSize& to) {
  const auto source = [](int64_t i, int64_t in, int64_t out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    return std::min(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), in - 1);
  };
  std::vector<uint8_t> out;
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x)
      out.push_back(pixels[static_cast<size_t>(source(y, from.height, to.height) * from.width +
                                               source(x, from.width, to.width))]);
  return out;
}

TEST(DetectionMasks, ResizesMasksAsTorch) {
  // torch.nn.functional.interpolate(torch.arange(7.)[None, None], size=4)
  EXPECT_EQ(resized_as_torch({0, 1, 2, 3, 4, 5, 6}, {1, 7}, {1, 4}), (std::vector<uint8_t>{0, 1, 3, 5}));
  for (const auto& [from, to] : kResizes)
    for (uint64_t seed = 0; seed < 20; ++seed)
      for (const bool flip : {false, true})
        for (const coco::Annotation& object : {random_mask(from, seed), random_polygons(from, seed)}) {
          const Placement placement{from, to, flip, /*resizes_masks=*/true};
          std::vector<uint8_t> pixels = coco::decode(coco::mask_of(object, from.height, from.width));
          if (flip) pixels = mirrored_mask(pixels, from);
          std::vector<int32_t> ends;
          append_runs(object, placement, ends);
          EXPECT_EQ(coco::decode(rle_of_ends(ends, to)), resized_as_torch(pixels, from, to));
          EXPECT_LE(ends.size(), most_runs(object, placement));
        }
}

TEST(DetectionMasks, ObjectWithoutMaskHasNoRuns) {
  std::vector<int32_t> ends = {5};
  append_runs({.box = {1, 2, 3, 4}}, {{10, 8}, {10, 8}}, ends);
  EXPECT_EQ(ends, std::vector<int32_t>{5});
  EXPECT_EQ(most_runs({.box = {1, 2, 3, 4}}, {{10, 8}, {10, 8}}), 0u);
}

TEST(DetectionMasks, RejectsMaskOfAnotherSize) {
  std::vector<int32_t> ends;
  expect_error(
      [&] {
        append_runs({.segmentation = coco::Rle{4, 5, {20}}}, {{5, 4}, {5, 4}}, ends);
      },
      Fault::data, "a mask of 5x4 pixels in an image of 4x5");
}

}  // namespace
}  // namespace dtrain::data
