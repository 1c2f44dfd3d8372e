// Quantisation of weights to int8 with sum-preserving rounding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::cpu {

// w[i] is about step * integers[i], with integers from -127 to 127.
struct QuantizedFilter {
  float step;
  std::vector<int8_t> integers;
};

// Quantises one filter with the smallest step at which integers 2 i and 2 i + 1 add up to no more than `max_pair_sum`,
// at least 127, and no less than its negative: then sums of pairs fit 16 bits. Each integer is w[i] / step rounded down
// or up, in general to nearest: as many are rounded the other way as it takes to preserve the sum of the filter.
// Activations are mostly of one sign, so that the error of the sum would otherwise dominate the error of the result. A
// filter whose step would be subnormal becomes zeros.
QuantizedFilter quantize_filter(std::span<const float> w, int max_pair_sum);

}  // namespace dtrain::cpu
