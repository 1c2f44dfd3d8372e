// Filters of floats as whole numbers of 8 bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::cpu {

// w[i] is about level * numbers[i]; numbers are from -127 to 127.
struct RoundedFilter {
  float level;
  std::vector<int8_t> numbers;
};

// `w`: numbers 2 i and 2 i + 1 are a pair, whose sum comes to no more than `most_of_pair`, which is at least 127, nor
// to less than -most_of_pair. The level is the lowest that allows that. Each number is one of the two next to w[i] /
// level, in general the nearest: as many others as are needed have their sum as near to that of w / level as it can be.
// Activations are mostly of one sign, so that otherwise what the sum has lost would be most of what a filter's result
// has lost. A filter whose level would be no normal float becomes zeros.
RoundedFilter rounded_filter(std::span<const float> w, int most_of_pair);

}  // namespace dtrain::cpu
