// Anchors against hand-computed and published values.
#include "dtrain/ops/anchors.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Rounding = AnchorOptions::Rounding;
using Centre = AnchorOptions::Centre;
using Floats = std::vector<float>;

TEST(Anchors, OfTorchvision) {
  const AnchorOptions options{
      .sizes = {32}, .ratios = {0.5, 1, 2}, .stride_h = 8, .stride_w = 16, .rounding = Rounding::corners};
  EXPECT_EQ(make_anchors(options, 1, 1), (Floats{-23, -11, 23, 11, -16, -16, 16, 16, -11, -23, 11, 23}));
  const Floats map = make_anchors(options, 3, 5);
  ASSERT_EQ(map.size(), 3u * 5 * 3 * 4);
  const size_t cell = (2 * 5 + 3) * 12;  // row 2, column 3
  EXPECT_EQ(Floats(map.begin() + cell, map.begin() + cell + 4), (Floats{-23 + 48, -11 + 16, 23 + 48, 11 + 16}));
}

TEST(Anchors, RoundHalvesToEven) {
  const AnchorOptions options{.sizes = {3, 5}, .ratios = {1}, .rounding = Rounding::corners};
  EXPECT_EQ(make_anchors(options, 1, 1), (Floats{-2, -2, 2, 2, -2, -2, 2, 2}));
}

TEST(Anchors, OfTensorPack) {
  const AnchorOptions options{.sizes = {8, 16}, .ratios = {0.25, 1}, .stride_h = 4, .stride_w = 4};
  EXPECT_EQ(make_anchors(options, 1, 1), (Floats{-8, -2, 8, 2, -4, -4, 4, 4, -16, -4, 16, 4, -8, -8, 8, 8}));
  const AnchorOptions half{.sizes = {32}, .ratios = {0.5}, .stride_h = 4, .stride_w = 4};
  const Floats found = make_anchors(half, 1, 1);
  EXPECT_FLOAT_EQ(found[2], static_cast<float>(16 * std::sqrt(2)));
  EXPECT_FLOAT_EQ(found[3], static_cast<float>(8 * std::sqrt(2)));
}

TEST(Anchors, InTheMiddleOfCells) {
  const AnchorOptions options{.sizes = {4}, .ratios = {1}, .stride_h = 8, .stride_w = 6, .centre = Centre::middle};
  EXPECT_EQ(make_anchors(options, 1, 2), (Floats{1, 2, 5, 6, 7, 2, 11, 6}));
}

// py-faster-rcnn's defaults: stride 16, scales 8, 16 and 32.
TEST(Anchors, OfDetectron) {
  AnchorOptions options{.sizes = {128, 256, 512},
                        .ratios = {0.5, 1, 2},
                        .stride_h = 16,
                        .stride_w = 16,
                        .rounding = Rounding::detectron,
                        .plus_one = true};
  const Floats inclusive{-84, -40, 99, 55, -176, -88,  191, 103, -360, -184, 375, 199,
                         -56, -56, 71, 71, -120, -120, 135, 135, -248, -248, 263, 263,
                         -36, -80, 51, 95, -80,  -168, 95,  183, -168, -344, 183, 359};
  EXPECT_EQ(make_anchors(options, 1, 1), inclusive);
  options.plus_one = false;
  Floats exclusive = inclusive;
  for (size_t i = 0; i < exclusive.size(); ++i) exclusive[i] += i % 4 >= 2 ? 1 : 0;
  EXPECT_EQ(make_anchors(options, 1, 1), exclusive);
  // Width round(45.25), height half of it, rounded to even.
  const AnchorOptions wide{
      .sizes = {256}, .ratios = {0.5}, .stride_h = 32, .stride_w = 32, .rounding = Rounding::detectron};
  EXPECT_EQ(make_anchors(wide, 1, 1), (Floats{-164, -72, 196, 104}));
  const Floats map = make_anchors(options, 2, 2);
  EXPECT_EQ(map[3 * 36], -84 + 16);
  EXPECT_EQ(map[3 * 36 + 1], -40 + 16);
}

TEST(Anchors, AreCounted) {
  EXPECT_EQ(anchors_per_cell({.sizes = {1, 2}, .ratios = {1, 2, 3}}), 6);
  EXPECT_TRUE(make_anchors({.sizes = {1}, .ratios = {1}}, 0, 7).empty());
}

TEST(Anchors, RefuseWhatIsNotPositive) {
  const auto refuse = [](const AnchorOptions& options, const std::string& part) {
    expect_error([&] { make_anchors(options, 1, 1); }, Fault::config, part);
  };
  refuse({.ratios = {1}}, "no sizes");
  refuse({.sizes = {1}}, "no ratios");
  refuse({.sizes = {-1}, .ratios = {1}}, "sizes -1");
  refuse({.sizes = {1}, .ratios = {INFINITY}}, "ratios inf");
  refuse({.sizes = {1}, .ratios = {1}, .stride_w = 0}, "strides 0");
  refuse({.sizes = {1}, .ratios = {1}, .stride_w = 2, .rounding = Rounding::detectron}, "one stride");
  expect_error([] { make_anchors({.sizes = {1}, .ratios = {1}}, -1, 1); }, Fault::config, "-1 x 1");
}

}  // namespace
}  // namespace dtrain
