// Terms of all-reduces, and checks of the sums. Plain pointers: tests are compiled without optimisation.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "dtrain/core/rng.h"
#include "dtrain/core/tensor.h"

namespace dtrain {

// Random values of a rank, generated once.
inline const std::vector<float>& values_of(int64_t count, int rank, uint64_t seed) {
  static std::map<std::tuple<int64_t, int, uint64_t>, std::vector<float>> made;
  std::vector<float>& values = made[{count, rank, seed}];
  if (values.empty()) {
    values.resize(static_cast<size_t>(count));
    RandomStream random(seed, static_cast<uint64_t>(rank));
    for (float& value : values) value = random.uniform() - 0.5f;
  }
  return values;
}

// One assertion for all elements.
inline void expect_near(const Tensor& x, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(x.count()), expected.size());
  const float* values = x.data<float>();
  const double* wanted = expected.data();
  for (int64_t i = 0; i < x.count(); ++i) {
    const double off = values[i] - wanted[i];
    if (!(off <= tolerance && off >= -tolerance))
      FAIL() << "element " << i << " of " << x.count() << " is " << values[i] << ", expected " << wanted[i];
  }
}

}  // namespace dtrain
