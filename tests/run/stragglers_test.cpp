// Which ranks are reported as slow, and when.
#include "libdtrain/run/stragglers.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Stragglers, AreWarnedOfOnceAfterThreeTimesInARow) {
  Stragglers stragglers;
  const std::vector<double> even = {1, 1.1, 1, 1.4}, slow = {1, 1, 3, 1};
  EXPECT_TRUE(stragglers.add(slow).empty());
  EXPECT_TRUE(stragglers.add(slow).empty());
  EXPECT_TRUE(stragglers.add(even).empty()) << "not in a row any more";
  EXPECT_EQ(stragglers.slowest().rank, 3);
  EXPECT_DOUBLE_EQ(stragglers.slowest().factor, 1.4);
  EXPECT_TRUE(stragglers.add(slow).empty());
  EXPECT_TRUE(stragglers.add(slow).empty());
  const std::vector<Straggler> found = stragglers.add(slow);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_DOUBLE_EQ(found[0].factor, 3);
  EXPECT_TRUE(stragglers.add(slow).empty()) << "said already";
}

TEST(Stragglers, OfTwoTheFasterIsTheMeasure) {
  Stragglers stragglers;
  stragglers.add({10, 1});
  EXPECT_EQ(stragglers.slowest().rank, 0);
  EXPECT_DOUBLE_EQ(stragglers.slowest().factor, 10);
}

TEST(Stragglers, NeedTheTimesOfAllRanks) {
  Stragglers stragglers;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(stragglers.add({1, 0, 9}).empty());
  EXPECT_EQ(stragglers.slowest().factor, 0);
}

}  // namespace
}  // namespace dtrain
