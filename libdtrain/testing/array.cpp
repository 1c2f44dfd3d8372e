#include "dtrain/testing/array.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "dtrain/core/rng.h"

namespace dtrain {
namespace {

// Rounds a float to bf16 or IEEE half bits, nearest even.
uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float of_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

float of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}
uint16_t f16_bits(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(static_cast<double>(value));
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520) return sign | 0x7C00;
  // In units in the last place: halves are integers of it, and the encoding is monotonic across exponents.
  const int exponent = magnitude < std::ldexp(1.0, -14) ? -14 : std::ilogb(magnitude);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<uint16_t>(sign + (exponent + 14) * 1024 + units);
}

}  // namespace

Array random_array(Shape shape, uint64_t seed, float low, float high) {
  Array array(shape);
  RandomStream random(seed, 0);
  for (double& value : array.values) value = random.uniform(low, high);
  return array;
}

Tensor to_device(Context& context, const Array& array, DType dtype) {
  const std::vector<float> values(array.values.begin(), array.values.end());
  if (dtype == DType::f32) return to_device(context, array.shape, values);
  DT_CHECK(dtype == DType::bf16 || dtype == DType::f16, "to_device: no floating-point type: ", dtype);
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), dtype == DType::bf16 ? bf16_bits : f16_bits);
  Tensor tensor = context.empty(array.shape, dtype);
  context.upload(bits.data(), tensor);
  return tensor;
}

Array to_host(Context& context, const Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    const std::vector<float> values = values_of<float>(context, tensor);
    return {tensor.shape(), std::vector<double>(values.begin(), values.end())};
  }
  DT_CHECK(tensor.dtype() == DType::bf16 || tensor.dtype() == DType::f16, "to_host: the tensor holds ", tensor.dtype());
  std::vector<uint16_t> bits(static_cast<size_t>(tensor.count()));
  context.download(tensor, bits.data(), "to_host");
  Array array(tensor.shape());
  std::transform(bits.begin(), bits.end(), array.values.begin(), tensor.dtype() == DType::bf16 ? of_bf16 : of_f16);
  return array;
}

Array rounded(const Array& array, DType dtype) {
  Array result = array;
  for (double& value : result.values) {
    const auto single = static_cast<float>(value);
    value = dtype == DType::bf16 ? of_bf16(bf16_bits(single)) : dtype == DType::f16 ? of_f16(f16_bits(single)) : single;
  }
  return result;
}

double largest(const Array& array) {
  double result = 0;
  for (double value : array.values) result = std::max(result, std::abs(value));
  return result;
}

void require_close(const Array& actual, const Array& expected, double bound, const std::string& what) {
  if (actual.shape != expected.shape)
    throw Error(Fault::numeric, concat(what, ": shape ", actual.shape, ", expected ", expected.shape));
  const double scale = largest(expected);
  int64_t worst = -1, wrong = 0;
  double excess = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double limit = bound * (std::abs(expected[i]) + scale), error = std::abs(actual[i] - expected[i]);
    if (error <= limit) continue;
    ++wrong;
    if (worst < 0 || error - limit > excess || std::isnan(error)) worst = i, excess = error - limit;
  }
  if (wrong > 0)
    throw Error(Fault::numeric,
                concat(what, ": ", wrong, " of ", expected.count(), " elements of ", expected.shape,
                       " are off, the worst at ", worst, ": ", actual[worst], ", expected ", expected[worst]));
}

}  // namespace dtrain
