// Epoch order.
#include "data/permutation.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tests/testing.h"

namespace dtrain::data {
namespace {

TEST(Permutation, VisitsEachSampleOnceAndDiffersBetweenEpochsAndSeeds) {
  for (uint64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    std::vector<int> visits(size);
    uint64_t same = 0;
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t sample = Permutation(size, 1, 0)(i);
      ASSERT_LT(sample, size);
      ++visits[sample];
      same += sample == Permutation(size, 1, 1)(i);
      same += sample == Permutation(size, 2, 0)(i);
    }
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), static_cast<int64_t>(size));
    if (size >= 100) {
      EXPECT_LT(same, size / 10);
    }
  }
}

// Chi-squared test that every ordered pair of distinct samples is equally frequent as neighbours; the limit exceeds the
// 1 - 1e-9 quantile.
TEST(Permutation, NeighboursAreUniformOverEpochs) {
  constexpr uint64_t kSize = 10, kEpochs = 20000;
  std::map<std::pair<uint64_t, uint64_t>, double> pairs;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation order(kSize, 3, epoch);
    for (uint64_t i = 0; i + 1 < kSize; i += 2) pairs[{order(i), order(i + 1)}] += 1;
  }
  const double expected = kEpochs * (kSize / 2) / 90.0;
  double chi2 = 0;
  for (const auto& [pair, count] : pairs) chi2 += (count - expected) * (count - expected) / expected;
  EXPECT_EQ(pairs.size(), 90u);
  EXPECT_LT(chi2, 190);  // 89 degrees of freedom
}

}  // namespace
}  // namespace dtrain::data
