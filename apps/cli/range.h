// Ranges of numeric flags.
#pragma once

#include <cstdint>
#include <limits>

#include "libdtrain/core/cores.h"

namespace dtrain::cli {

// Inclusive limits.
template <class T>
struct Range {
  T low, high;
};
template <class T>
inline constexpr Range<T> kAny{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};

// For numbers that are converted to float.
inline constexpr Range<double> kNotNegative{0, 1e30}, kShare{0, 1}, kBelowOne{0, 0.999999};

// Twice the maximum number of steps (warm-up included) times the maximum batch fits 64 bits; a count fits an int.
inline constexpr int64_t kMostSteps = 2'000'000'000, kMostSamplesOfStep = INT32_MAX;
inline constexpr Range<int64_t> kCount{0, kMostSteps}, kPositiveCount{1, kMostSteps};

// In these ranges, 0 means automatic.
inline constexpr Range<int64_t> kThreads{0, kMaxThreads};
inline constexpr Range<int64_t> kBatch{0, 1 << 20}, kImageSize{0, 4096}, kClasses{0, 1 << 24};

}  // namespace dtrain::cli
