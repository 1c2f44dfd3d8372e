// crop_and_resize against hand-computed values, and the preprocessing of AWS's script.
#include "data/crop_and_resize.h"

#include "dtrain/data/augment.h"
#include "dtrain/data/png.h"
#include "tests/data/noise.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

using Values = std::vector<float>;

TEST(CropAndResize, AlignsCorners) {
  Interpolation samples;
  interpolate_corners({.from = 0, .to = 1, .in = 3, .count = 5}, samples);
  EXPECT_EQ(samples.low, (std::vector<int>{0, 0, 1, 1, 2}));
  EXPECT_EQ(samples.fraction, (Values{0, 0.5f, 0, 0.5f, 0}));
  EXPECT_EQ(samples.begin(), 0);
  EXPECT_EQ(samples.end(3), 3);
  interpolate_corners({.from = 0.25f, .to = 0.75f, .in = 9, .count = 3, .flip = true}, samples);
  EXPECT_EQ(samples.low, (std::vector<int>{6, 4, 2}));
  EXPECT_EQ(samples.end(9), 8);
  interpolate_corners({.from = 0.25f, .to = 0.75f, .in = 4, .count = 1}, samples);  // a single sample is in the middle
  EXPECT_EQ(samples.low, (std::vector<int>{1}));
  EXPECT_EQ(samples.fraction, (Values{0.5f}));
}

TEST(CropAndResize, ClampsToLastPixel) {
  Interpolation samples;
  for (int in = 1; in < 700; ++in) {
    interpolate_corners({.from = 0, .to = 1, .in = in, .count = 224}, samples);
    ASSERT_LE(samples.low.back(), in - 1);
    ASSERT_LE(samples.end(in), in);
    ASSERT_FALSE(samples.low.back() == in - 1 && samples.fraction.back() > 0) << in;
  }
}

TEST(CropAndResize, InterpolatesBothAxes) {
  Image image(2, 2);
  for (int i = 0; i < 12; ++i)
    image.pixels[static_cast<size_t>(i)] =
        static_cast<uint8_t>(std::vector{0, 4, 100, 200}[static_cast<size_t>(i / 3)] + i % 3);
  Interpolation axis;
  interpolate_corners({.from = 0, .to = 1, .in = 2, .count = 3}, axis);
  Values out(3 * 9);
  interpolate(image.view(), axis, axis, out.data());
  for (int channel = 0; channel < 3; ++channel)
    for (int i = 0; i < 9; ++i)
      EXPECT_EQ(out[static_cast<size_t>(3 * i + channel)],
                static_cast<float>(std::vector{0, 2, 4, 50, 76, 102, 100, 150, 200}[static_cast<size_t>(i)] + channel));
  EXPECT_THROW(interpolate_corners({.from = 0.5f, .to = 0.25f, .in = 2, .count = 3}, axis), Error);
  EXPECT_THROW(interpolate_corners({.from = 0, .to = 1.5f, .in = 2, .count = 3}, axis), Error);
}

TEST(Aws, ConstantImagesStayConstant) {
  Image image(97, 61);
  for (size_t i = 0; i < 3 * 97 * 61; ++i) image.pixels[i] = std::vector<uint8_t>{255, 37, 1}[i % 3];
  const std::vector<std::byte> bytes = encode_png(image.view());
  for (const bool training : {true, false}) {
    const auto preprocessor =
        make_preprocess({.preset = Preset::aws, .training = training, .height = 32, .width = 40})();
    std::vector<uint8_t> pixels(3 * 32 * 40);
    for (uint64_t sample = 0; sample < 50; ++sample) {
      preprocessor->run(bytes, {}, {1, 0, sample, sample}, pixels.data());
      for (size_t i = 0; i < pixels.size(); ++i) ASSERT_EQ(pixels[i], image.pixels[i % 3]);
    }
  }
}

TEST(Aws, FlipsHalfAndDistortsOnRequest) {
  const std::vector<std::byte> bytes = encode_png(noise(80, 60, 13).view());
  PreprocessOptions options{.preset = Preset::aws, .height = 24, .width = 24};
  const auto plain = make_preprocess(options)();
  options.distort_color = true;
  const auto distorted = make_preprocess(options)();
  std::vector<uint8_t> a(3 * 24 * 24), b(a.size()), again(a.size());
  for (uint64_t sample = 0; sample < 4; ++sample) {
    const SampleKey key{1, 0, sample, sample};
    plain->run(bytes, {}, key, a.data());
    distorted->run(bytes, {}, key, b.data());
    EXPECT_NE(a, b);
    distorted->run(bytes, {}, key, again.data());
    EXPECT_EQ(b, again);
  }
  EXPECT_THROW(make_preprocess({.preset = Preset::official, .distort_color = true}), Error);
}

}  // namespace
}  // namespace dtrain::data
