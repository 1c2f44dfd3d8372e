// Image ops against their definitions, and sampling frequencies of policies. tests/parity compares with torchvision.
#include "dtrain/data/auto_augment.h"

#include <cmath>
#include <map>

#include "dtrain/data/color_jitter.h"
#include "tests/data/noise.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

constexpr int kDraws = 20000;

// Expects `count` of kDraws within 4 standard errors of `expected`.
void expect_share(int count, double expected, const std::string& what) {
  const double error = std::sqrt(expected * (1 - expected) / kDraws);
  EXPECT_NEAR(static_cast<double>(count) / kDraws, expected, 4 * error) << what;
}

std::vector<uint8_t> pixel(const Image& image, int x, int y) {
  const uint8_t* at = image.view().row(y) + 3 * x;
  return {at, at + 3};
}

TEST(ImageEditor, GeometricOps) {
  const Image from = noise(9, 7, 1);
  ImageEditor editor;
  const std::vector<uint8_t> black(3, 0);
  Image image = from;
  editor.apply(ImageOp::translate_x, 2.9, image);
  EXPECT_EQ(pixel(image, 2, 3), pixel(from, 0, 3));
  EXPECT_EQ(pixel(image, 1, 3), black);
  image = from;
  editor.apply(ImageOp::translate_y, -3, image);
  EXPECT_EQ(pixel(image, 4, 0), pixel(from, 4, 3));
  EXPECT_EQ(pixel(image, 4, 6), black);
  image = from;
  editor.apply(ImageOp::shear_x, 1, image);
  EXPECT_EQ(pixel(image, 2, 3), pixel(from, 6, 3)) << "the centre of row 3 lies 3.5 below the edge";
  Image square = noise(8, 8, 2), turned = square;
  editor.apply(ImageOp::rotate, 90, turned);
  EXPECT_EQ(pixel(turned, 0, 7), pixel(square, 0, 0)) << "counterclockwise";
}

TEST(ImageEditor, ColourOps) {
  Image image(2, 1);
  const std::vector<uint8_t> levels{10, 200, 101, 60, 127, 255};
  const auto after = [&](ImageOp op, double magnitude) {
    std::ranges::copy(levels, image.pixels.begin());
    ImageEditor().apply(op, magnitude, image);
    return std::vector<uint8_t>(image.pixels.begin(), image.pixels.begin() + 6);
  };
  using Levels = std::vector<uint8_t>;
  EXPECT_EQ(after(ImageOp::identity, 3), levels);
  EXPECT_EQ(after(ImageOp::invert, 0), (Levels{245, 55, 154, 195, 128, 0}));
  EXPECT_EQ(after(ImageOp::posterize, 4), (Levels{0, 192, 96, 48, 112, 240}));
  EXPECT_EQ(after(ImageOp::solarize, 101), (Levels{10, 55, 154, 60, 128, 0}));
  EXPECT_EQ(after(ImageOp::brightness, 0.5), (Levels{15, 255, 151, 90, 190, 255}));
  EXPECT_EQ(after(ImageOp::auto_contrast, 0), (Levels{0, 255, 0, 255, 0, 255}));
  EXPECT_EQ(after(ImageOp::equalize, 0), levels) << "too few pixels for a step";
}

TEST(DrawChanges, RandAugmentIsUniform) {
  std::map<ImageOp, int> ops, negative;
  const PolicyOptions options{.policy = AugmentPolicy::rand_augment, .ops = 3, .magnitude = 30};
  for (uint64_t i = 0; i < kDraws; ++i) {
    RandomStream random(1, i);
    const std::vector<Change> changes = draw_changes(options, 331, 662, random);
    ASSERT_EQ(changes.size(), 3u);
    const Change& change = changes[i % 3];
    ++ops[change.op];
    negative[change.op] += change.magnitude < 0;
    const std::map<ImageOp, double> largest{
        {ImageOp::translate_x, 150}, {ImageOp::translate_y, 300}, {ImageOp::posterize, 4}, {ImageOp::rotate, 30}};
    const auto found = largest.find(change.op);
    ASSERT_EQ(std::abs(change.magnitude), found == largest.end() ? std::abs(change.magnitude) : found->second);
  }
  EXPECT_EQ(ops.size(), 14u);
  for (const auto& [op, count] : ops) {
    expect_share(count, 1.0 / 14, std::string(name_of(op)));
    EXPECT_NEAR(negative[op], is_signed(op) ? count / 2.0 : 0, 2 * std::sqrt(count)) << name_of(op);
  }
}

TEST(DrawChanges, TrivialAugmentDrawsMagnitudes) {
  std::map<double, int> angles;
  int turned = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    RandomStream random(2, i);
    const std::vector<Change> changes = draw_changes({.policy = AugmentPolicy::trivial_augment}, 32, 32, random);
    ASSERT_EQ(changes.size(), 1u);
    if (changes[0].op != ImageOp::rotate) continue;
    ++turned;
    ++angles[std::abs(changes[0].magnitude)];
  }
  EXPECT_EQ(angles.size(), 31u);
  EXPECT_EQ(angles.rbegin()->first, 135);
  for (const auto& [angle, count] : angles) EXPECT_NEAR(count, turned / 31.0, 4 * std::sqrt(turned / 31.0)) << angle;
}

TEST(DrawChanges, PoliciesDrawPairsByTheirProbabilities) {
  // Sub-policies 14 and 23 of ImageNet are (Color 0.6, level 4) and (Contrast 1.0, level 8); no others use contrast.
  int contrasts = 0, both = 0, empty = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    RandomStream random(3, i);
    const std::vector<Change> changes = draw_changes({.policy = AugmentPolicy::imagenet}, 224, 224, random);
    ASSERT_LE(changes.size(), 2u);
    empty += changes.empty();
    if (changes.empty() || changes.back().op != ImageOp::contrast) continue;
    ++contrasts;
    both += changes.size() == 2;
    ASSERT_NEAR(std::abs(changes.back().magnitude), 0.8, 1e-6);
  }
  expect_share(contrasts, 2.0 / 25, "contrasts");
  EXPECT_NEAR(both, 0.6 * contrasts, 4 * std::sqrt(0.24 * contrasts));
  EXPECT_GT(empty, 0);
  RandomStream random(4, 0);
  EXPECT_TRUE(draw_changes({}, 224, 224, random).empty());
}

TEST(JitterColors, FactorsAreUniformInRandomOrder) {
  Image grey(4, 4);
  ImageEditor editor;
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    RandomStream random(5, i);
    std::ranges::fill(grey.pixels, uint8_t{100});
    jitter_colors({.brightness = 0.5f}, editor, grey, random);
    ASSERT_GE(grey.pixels[0], 50);
    ASSERT_LE(grey.pixels[0], 150);
    sum += grey.pixels[0];
  }
  EXPECT_NEAR(sum / kDraws, 99.5, 4 * 100 / std::sqrt(12.0 * kDraws)) << "levels are cut off";
  // Brightness saturates at 255 before or after contrast; both orders occur.
  Image image(2, 1);
  std::map<bool, int> brightness_first;
  for (uint64_t i = 0; i < 200; ++i) {
    RandomStream random(6, i), again(6, i);
    const std::vector<uint8_t> levels{250, 250, 250, 10, 10, 10};
    std::ranges::copy(levels, image.pixels.begin());
    jitter_colors({.brightness = 1, .contrast = 1}, editor, image, random);
    const float brightness = again.uniform(0, 2), contrast = again.uniform(0, 2);
    Image other(2, 1);
    std::ranges::copy(levels, other.pixels.begin());
    editor.scale_brightness(other, brightness);
    editor.scale_contrast(other, contrast);
    ++brightness_first[other.pixels == image.pixels];
  }
  EXPECT_GT(brightness_first[true], 60);
  EXPECT_GT(brightness_first[false], 30);
}

}  // namespace
}  // namespace dtrain::data
