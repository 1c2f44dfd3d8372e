// Limits of the numbers that users give. Every flag that is a number declares its own.
#pragma once

#include <cstdint>
#include <limits>

#include "libdtrain/core/cores.h"

namespace dtrain::cli {

// Both included.
template <class T>
struct Range {
  T low, high;
};
template <class T>
inline constexpr Range<T> kAny{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};

// Of numbers that become floats.
inline constexpr Range<double> kNotNegative{0, 1e30}, kShare{0, 1}, kBelowOne{0, 0.999999};

// Twice as many steps, with the warm-up, of as many samples as a step may have: their product fits 64 bits, a count
// fits an int.
inline constexpr int64_t kMostSteps = 2'000'000'000, kMostSamplesOfStep = INT32_MAX;
inline constexpr Range<int64_t> kCount{0, kMostSteps}, kPositiveCount{1, kMostSteps};

// In all of these 0 leaves the choice to the program.
inline constexpr Range<int64_t> kThreads{0, kMaxThreads};
inline constexpr Range<int64_t> kBatch{0, 1 << 20}, kImageSize{0, 4096}, kClasses{0, 1 << 24};

}  // namespace dtrain::cli
