#include "apps/info/convolution_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dtrain/core/rng.h"
#include "dtrain/ops/conv2d.h"

namespace dtrain::info {
namespace {

constexpr int kLargest = 4;  // of the numbers in a case

std::vector<float> whole_numbers(uint64_t stream, int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(Philox::block(1, stream, i)[0] % (2 * kLargest + 1)) - kLargest;
  return numbers;
}

uint16_t to_f16(float whole) {
  const int size = std::abs(static_cast<int>(whole));
  if (size == 0) return 0;
  const int exponent = std::ilogb(size);
  const auto fraction = static_cast<uint16_t>((size << (10 - exponent)) & 0x3ff);
  return static_cast<uint16_t>((whole < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | fraction);
}

float from_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return std::numeric_limits<float>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

Tensor uploaded(Context& context, const std::vector<float>& values, Shape shape, DType dtype) {
  const Tensor tensor = context.empty(shape, dtype);
  if (dtype == DType::f32) {
    context.upload(values.data(), tensor);
    return tensor;
  }
  std::vector<uint16_t> halves;
  for (const float value : values) halves.push_back(to_f16(value));
  context.upload(halves.data(), tensor);
  return tensor;
}

}  // namespace

ConvolutionCase::ConvolutionCase()
    : x(whole_numbers(0, kImages * kSize * kSize * kChannels)), w(whole_numbers(1, kChannels * 9 * kChannels)) {
  for (int64_t n = 0; n < kImages; ++n)
    for (int64_t p = 0; p < kSize * kSize; ++p)
      for (int64_t k = 0; k < kChannels; ++k) {
        double sum = 0, size = 0;
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int64_t row = p / kSize + tap / 3 - 1, column = p % kSize + tap % 3 - 1;
          if (row < 0 || row >= kSize || column < 0 || column >= kSize) continue;
          const float* pixel = &x[static_cast<size_t>(((n * kSize + row) * kSize + column) * kChannels)];
          const float* filter = &w[static_cast<size_t>((k * 9 + tap) * kChannels)];
          for (int64_t c = 0; c < kChannels; ++c) {
            const double term = double{pixel[c]} * double{filter[c]};
            sum += term;
            size += std::abs(term);
          }
        }
        y.push_back(sum);
        terms.push_back(size);
      }
}

double ConvolutionCase::error_of(std::span<const float> output) const {
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(double{output[i]} - y[i]) / terms[i];
    if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

std::vector<float> convolution_on(Context& context, const ConvolutionCase& convolution, DType dtype) {
  using Case = ConvolutionCase;
  Tape tape(context, Mode::eval);
  const Var x = tape.constant(
      uploaded(context, convolution.x, {Case::kImages, Case::kSize, Case::kSize, Case::kChannels}, dtype));
  const Var w = tape.constant(uploaded(context, convolution.w, {Case::kChannels, 3, 3, Case::kChannels}, dtype));
  const Var y = conv2d(tape, x, w, {.padding = 1});
  std::vector<float> output(convolution.y.size());
  if (dtype == DType::f32) {
    context.download(y.value, output.data(), "self-test");
    return output;
  }
  std::vector<uint16_t> halves(output.size());
  context.download(y.value, halves.data(), "self-test");
  for (size_t i = 0; i < output.size(); ++i) output[i] = from_f16(halves[i]);
  return output;
}

}  // namespace dtrain::info
