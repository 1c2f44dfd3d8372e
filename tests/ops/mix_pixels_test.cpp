// Random erasing and mixing against their definition in double precision.
#include "dtrain/ops/mix_pixels.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 5, kHeight = 9, kWidth = 11;
const Shape kImages{kRows, kHeight, kWidth, 3};

// Left, top, right, bottom and a key: the second is empty, the third exceeds the image.
const std::vector<int32_t> kErased{1,  2, 5, 6,  7,  8, 0, 0, 0, 0, 0, 0,  8, 5, 20,
                                   30, 1, 2, -3, -3, 2, 2, 3, 4, 0, 0, 11, 9, 5, 6};
const std::vector<int32_t> kPartners{4, 0, 1, 3, 9};
const std::vector<float> kWeights{0.25f, 0, 0.75f, 0.5f, 0};
const std::vector<int32_t> kBoxes{0, 0, 11, 9, 3, 2, 7, 8, -2, 4, 20, 20, 0, 0, 11, 9, 0, 0, 11, 9};
const PixelNormalization kNormalization{{100, 110, 120}, {0.02f, 0.025f, 0.03f}};

bool inside(const int32_t* window, int64_t x, int64_t y) {
  return x >= window[0] && x < window[2] && y >= window[1] && y < window[3];
}

// Pixels before mixing, without noise.
double prepared(const Array& pixels, bool erases, Erased value, int64_t row, int64_t y, int64_t x, int64_t c) {
  const auto normal = [c](double level) {
    return (level - double{kNormalization.mean[c]}) * double{kNormalization.scale[c]};
  };
  if (erases && inside(kErased.data() + 6 * row, x, y)) return value == Erased::mean ? 0 : normal(0);
  return normal(pixels[((row * kHeight + y) * kWidth + x) * 3 + c]);
}

Array mixed_by_definition(const Array& pixels, bool erases, bool mixes, Erased value, int64_t channels) {
  Array expected({kRows, kHeight, kWidth, channels});
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t y = 0; y < kHeight; ++y)
      for (int64_t x = 0; x < kWidth; ++x)
        for (int64_t c = 0; c < 3; ++c) {
          const auto number = static_cast<size_t>(row);
          double level = prepared(pixels, erases, value, row, y, x, c);
          const int64_t partner = kPartners[number];
          if (mixes && partner < kRows && inside(kBoxes.data() + 4 * row, x, y))
            level = double{kWeights[number]} * level +
                    (1 - double{kWeights[number]}) * prepared(pixels, erases, value, partner, y, x, c);
          expected[((row * kHeight + y) * kWidth + x) * channels + c] = level;
        }
  return expected;
}

PixelMixing mixing_on(Context& context, bool erases, bool mixes, Erased value) {
  PixelMixing mixing{.value = value};
  if (erases) mixing.erased = to_device(context, {kRows, 6}, kErased);
  if (!mixes) return mixing;
  mixing.partners = to_device(context, {kRows}, kPartners);
  mixing.weights = to_device(context, {kRows}, kWeights);
  mixing.boxes = to_device(context, {kRows, 4}, kBoxes);
  return mixing;
}

TEST(MixPixels, FollowsItsDefinition) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < kImages.count(); ++i) bytes.push_back(static_cast<uint8_t>(i * 97 % 256));
  const Array levels(kImages, std::vector<double>(bytes.begin(), bytes.end()));
  for (const auto& context : devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const bool erases : {false, true})
        for (const bool mixes : {false, true})
          for (const Erased value : {Erased::mean, Erased::black})
            for (const int channels : {3, 8}) {
              if (context->is_cpu() && dtype == DType::f16) continue;
              PixelNormalization to = kNormalization;
              to.dtype = dtype;
              to.channels = channels;
              const Array expected = mixed_by_definition(levels, erases, mixes, value, channels);
              const PixelMixing mixing = mixing_on(*context, erases, mixes, value);
              poison(*context);
              const std::string what = concat(dtype, erases ? ", erased" : "", mixes ? ", mixed" : "");
              const Tensor u8 = to_device(*context, kImages, bytes), f32 = to_device(*context, levels);
              expect_close(to_host(*context, mix_pixels(*context, u8, to, mixing)), expected, bounds_of(dtype).value,
                           "u8, " + what);
              expect_close(to_host(*context, mix_pixels(*context, f32, to, mixing)), expected, bounds_of(dtype).value,
                           "f32, " + what);
            }
}

// Noise of mean 0 and variance 1, determined by its key.
TEST(MixPixels, NoiseIsNormalAndFollowsFromItsKey) {
  constexpr int64_t kSide = 64, kCount = 3 * kSide * kSide;
  const std::vector<int32_t> windows{0, 0, kSide, kSide, 1, 2, 0, 0, kSide, kSide, 1, 2, 0, 0, kSide, kSide, 1, 3};
  std::vector<double> first;
  for (const auto& context : devices()) {
    const PixelMixing mixing{.erased = to_device(*context, {3, 6}, windows), .value = Erased::noise};
    const Tensor x = context->zeros({3, kSide, kSide, 3});
    const std::vector<double> noise = to_host(*context, mix_pixels(*context, x, kNormalization, mixing)).values;
    double sum = 0, squares = 0, products = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const auto at = [&](int64_t row) { return noise[static_cast<size_t>(row * kCount + i)]; };
      ASSERT_EQ(at(0), at(1));
      sum += at(0);
      squares += at(0) * at(0);
      products += at(0) * at(2);
    }
    const double error = 1 / std::sqrt(static_cast<double>(kCount));
    EXPECT_LT(std::abs(sum / kCount), 4 * error);
    EXPECT_LT(std::abs(squares / kCount - 1), 4 * std::sqrt(2.0) * error);
    EXPECT_LT(std::abs(products / kCount), 4 * error);
    if (first.empty()) first = noise;
    expect_close(Array({3, kSide, kSide, 3}, noise), Array({3, kSide, kSide, 3}, first), 1e-5, "noise of a device");
  }
}

TEST(MixPixels, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  const Tensor x = context->zeros({2, 3, 3, 3}), column = context->zeros({2});
  expect_error([&] { mix_pixels(*context, column, {}, {}); }, Fault::config, "[n, h, w, 3]");
  expect_error([&] { mix_pixels(*context, x, {}, {.erased = column}); }, Fault::config, "erased [2]");
  expect_error([&] { mix_pixels(*context, x, {}, {.weights = column}); }, Fault::config, "go together");
}

}  // namespace
}  // namespace dtrain
