// Philox against Random123's published known answers (kat_vectors), and distributions.
#include "dtrain/core/rng.h"

#include <set>

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox::block(0, 0, 0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::block(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0, lowest word first
  EXPECT_EQ(Philox::block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, DrawsTheBlocksInOrder) {
  RandomStream random(7, 9);
  for (uint64_t counter = 0; counter < 3; ++counter)
    for (uint32_t word : Philox::block(7, 9, counter)) EXPECT_EQ(random.next(), word);
}

TEST(RandomStream, StreamsAndSeedsDiffer) {
  std::set<uint64_t> draws;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (uint64_t stream = 0; stream < 10; ++stream) draws.insert(RandomStream(seed, stream).next64());
  EXPECT_EQ(draws.size(), 100u);
}

TEST(RandomStream, Uniform) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_LT(unit_float(~0u), 1.0f);
  RandomStream random(1, 0);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.uniform(2, 4);
    ASSERT_TRUE(2 <= x && x < 4);
    sum += x;
    squares += (x - 3) * (x - 3);
  }
  EXPECT_NEAR(sum / kDraws, 3, 0.01);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.01);
}

TEST(RandomStream, BelowIsEven) {
  RandomStream random(2, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (int count : counts) EXPECT_NEAR(count, 10000, 400);
  EXPECT_EQ(random.below(1), 0u);
  // About a quarter of the words are rejected; otherwise the lower half would be too frequent.
  const uint32_t bound = 0xC0000000;
  int low = 0;
  for (int i = 0; i < 20000; ++i) low += random.below(bound) < bound / 2;
  EXPECT_NEAR(low, 10000, 300);
}

TEST(RandomStream, Normal) {
  RandomStream random(3, 0);
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(fourth / kDraws, 3, 0.15);
}

}  // namespace
}  // namespace dtrain
