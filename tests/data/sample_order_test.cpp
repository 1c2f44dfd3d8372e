#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "data/permutation.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

// Group of each record: `sizes` records per group, mixed.
std::vector<size_t> mixed_groups(const std::vector<uint64_t>& sizes) {
  std::vector<uint64_t> left = sizes;
  std::vector<size_t> groups;
  for (size_t next = 0; groups.size() < std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});) {
    next = (next * 5 + 3) % left.size();
    while (left[next] == 0) next = (next + 1) % left.size();
    --left[next];
    groups.push_back(next);
  }
  return groups;
}

SampleOrder order_of_groups(const std::vector<size_t>& groups, size_t count, const SampleOrder::Options& options) {
  return {groups.size(), count, [&](uint64_t record) { return groups[record]; }, options};
}

const std::vector<std::vector<uint64_t>> kGroupSizes = {
    {70, 30}, {30, 70}, {1, 99}, {99, 1}, {50, 30, 20}, {0, 7, 0, 5, 13, 0}, {17, 17, 17}};

TEST(SampleOrder, OneGroupIsTheStreamOfPermutations) {
  const SampleOrder order(50, 1, [](uint64_t) { return size_t{0}; }, {true, 7, 8});
  for (uint64_t position : {uint64_t{0}, uint64_t{49}, uint64_t{50}, uint64_t{777}, uint64_t{1} << 60}) {
    const SampleOrder::Place place = order.at(position);
    EXPECT_EQ(place.key.epoch, position / 50);
    EXPECT_EQ(place.key.sample, Permutation(50, 7, position / 50)(position % 50));
    EXPECT_EQ(place.key.position, position);
    EXPECT_EQ(order.position_after(position), position);
  }
  EXPECT_EQ(order.end(), UINT64_MAX);
}

// Closed form against an iteration over all batches: group streams continue without gaps, each epoch of a group has
// each record once, and shares deviate by less than the bound.
TEST(SampleOrder, GroupsInterleaveInProportion) {
  constexpr uint64_t kBatch = 6, kBatches = 700;
  for (const std::vector<uint64_t>& sizes : kGroupSizes) {
    const std::vector<size_t> groups = mixed_groups(sizes);
    const SampleOrder order = order_of_groups(groups, sizes.size(), {true, 7, kBatch});
    std::vector<std::vector<uint64_t>> streams(sizes.size());
    std::vector<uint64_t> batches(sizes.size());
    for (uint64_t b = 0; b < kBatches; ++b) {
      const size_t group = order.group_of_batch(b * kBatch);
      ++batches[group];
      for (uint64_t i = 0; i < kBatch; ++i) {
        const SampleOrder::Place place = order.at(b * kBatch + i);
        ASSERT_EQ(place.group, group);
        ASSERT_EQ(groups[place.key.sample], group);
        ASSERT_EQ(place.key.epoch, streams[group].size() / sizes[group]);
        ASSERT_EQ(place.key.position, b * kBatch + i);
        streams[group].push_back(place.key.sample);
      }
      for (size_t g = 0; g < sizes.size(); ++g) {
        const double expected = static_cast<double>((b + 1) * sizes[g]) / static_cast<double>(groups.size());
        ASSERT_LT(std::abs(static_cast<double>(batches[g]) - expected), 1.0 + static_cast<double>(g));
      }
    }
    for (size_t g = 0; g < sizes.size(); ++g)
      for (size_t begin = 0; sizes[g] > 0 && begin + sizes[g] <= streams[g].size(); begin += sizes[g])
        ASSERT_EQ(std::set<uint64_t>(streams[g].begin() + begin, streams[g].begin() + begin + sizes[g]).size(),
                  sizes[g]);
  }
}

TEST(SampleOrder, SharesAreExactAfterAFullRound) {
  for (const std::vector<uint64_t>& sizes : kGroupSizes) {
    const std::vector<size_t> groups = mixed_groups(sizes);
    const SampleOrder order = order_of_groups(groups, sizes.size(), {true, 7, 4});
    std::vector<uint64_t> batches(sizes.size());
    for (uint64_t b = 0; b < groups.size(); ++b) ++batches[order.group_of_batch(4 * b)];
    EXPECT_EQ(batches, sizes);
  }
}

TEST(SampleOrder, WorksAtAnyPosition) {
  const std::vector<size_t> groups = mixed_groups({50, 30, 20});
  const SampleOrder order = order_of_groups(groups, 3, {true, 7, 5});
  constexpr uint64_t kRound = 5 * 100;  // period of the groups' interleaving, in positions
  for (const uint64_t round : {uint64_t{1}, uint64_t{1} << 40, uint64_t{1} << 54})
    for (uint64_t position = 0; position < kRound; position += 5)
      ASSERT_EQ(order.group_of_batch(position + round * kRound), order.group_of_batch(position));
}

TEST(SampleOrder, ContentsOfBatchesChangeFromEpochToEpoch) {
  const std::vector<size_t> groups = mixed_groups({60, 40});
  const SampleOrder order = order_of_groups(groups, 2, {true, 7, 4});
  std::set<std::set<uint64_t>> seen;
  for (uint64_t b = 0; b < 200; ++b) {
    std::set<uint64_t> batch;
    for (uint64_t i = 0; i < 4; ++i) batch.insert(order.at(4 * b + i).key.sample);
    seen.insert(batch);
  }
  EXPECT_GT(seen.size(), 195u);
}

TEST(SampleOrder, GroupsOfEqualSizeDiffer) {
  const std::vector<size_t> groups = mixed_groups({50, 50});
  const SampleOrder order = order_of_groups(groups, 2, {true, 7, 1});
  std::vector<std::vector<uint64_t>> rank_in_group(2), numbers(2, std::vector<uint64_t>(100));
  for (uint64_t record = 0, first = 0, second = 0; record < 100; ++record)
    numbers[groups[record]][record] = groups[record] == 0 ? first++ : second++;
  for (uint64_t position = 0; position < 100; ++position) {
    const SampleOrder::Place place = order.at(position);
    rank_in_group[place.group].push_back(numbers[place.group][place.key.sample]);
  }
  EXPECT_NE(rank_in_group[0], rank_in_group[1]);
}

TEST(SampleOrder, EvaluationVisitsEachRecordOnceGroupAfterGroup) {
  for (const std::vector<uint64_t>& sizes : kGroupSizes) {
    const std::vector<size_t> groups = mixed_groups(sizes);
    const SampleOrder order = order_of_groups(groups, sizes.size(), {false, 7, 8});
    std::vector<std::vector<uint64_t>> expected(sizes.size()), visited(sizes.size());
    for (uint64_t record = 0; record < groups.size(); ++record) expected[groups[record]].push_back(record);
    uint64_t consumed = 0;
    for (uint64_t position = 0; position < order.end(); ++position) {
      ASSERT_EQ(order.consumed_at(position), consumed);
      if (position % 8 == 0) {
        ASSERT_EQ(order.position_after(consumed), position);
      }
      const SampleOrder::Place place = order.at(position);
      ASSERT_EQ(place.group, order.group_of_batch(position / 8 * 8));
      if (place.key.sample >= groups.size()) continue;
      visited[place.group].push_back(place.key.sample);
      ++consumed;
    }
    EXPECT_EQ(visited, expected);
    EXPECT_EQ(order.consumed_at(order.end() + 100), groups.size());
    EXPECT_EQ(order.position_after(groups.size()), order.end());
  }
}

TEST(SampleOrder, RejectsInvalidOptions) {
  const auto first = [](uint64_t) { return size_t{0}; };
  expect_error([&] { SampleOrder(0, 1, first, {}); }, Fault::config, "0 records");
  expect_error([&] { SampleOrder(1, 0, first, {}); }, Fault::config, "0 groups");
  expect_error([&] { SampleOrder(1, 1, first, {.batch = 0}); }, Fault::config, "batches of 0");
  expect_error([&] { SampleOrder(4, 2, [](uint64_t i) { return i; }, {}); }, Fault::config, "record 2 is of group 2");
  const SampleOrder order = order_of_groups(mixed_groups({20, 20}), 2, {true, 7, 8});
  expect_error([&] { order.position_after(12); }, Fault::config, "12 samples consumed is no whole number of batches");
}

}  // namespace
}  // namespace dtrain::data
