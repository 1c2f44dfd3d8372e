// Top-k and non-maximum suppression, against a stable sort and a loop over all pairs.
#include "dtrain/ops/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Scores = std::vector<float>;
using Ranks = std::vector<int32_t>;

// First `count` of a row, sorted; then -infinity and -1.
void naive_top(const double* row, int64_t count, size_t k, Scores& values, Ranks& indices) {
  const auto value = [&](int32_t i) { return std::isnan(row[i]) ? -INFINITY : row[i]; };
  Ranks order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return value(a) > value(b); });
  for (size_t i = 0; i < k; ++i) {
    const bool there = i < order.size();
    values.push_back(there ? static_cast<float>(value(order[i])) : -INFINITY);
    indices.push_back(there ? order[i] : -1);
  }
}

// counts [rows] or empty.
void expect_top(Context& context, const Array& scores, const Ranks& counts, int64_t k, DType dtype = DType::f32) {
  const int64_t rows = scores.dim(0), n = scores.dim(1);
  const Array exact = rounded(scores, dtype);
  Scores expected_values;
  Ranks expected_indices;
  for (int64_t row = 0; row < rows; ++row)
    naive_top(exact.values.data() + row * n,
              counts.empty() ? n : std::clamp<int64_t>(counts[static_cast<size_t>(row)], 0, n), static_cast<size_t>(k),
              expected_values, expected_indices);
  const Tensor from = to_device(context, scores, dtype);
  const Tensor count = counts.empty() ? Tensor() : to_device(context, {rows}, counts);
  poison(context);
  const Tensor values = context.empty({rows, k}), indices = context.empty({rows, k}, DType::i32);
  top_k(context, from, count, values, indices);
  EXPECT_EQ(values_of<float>(context, values), expected_values) << scores.shape << ", k " << k << ", " << dtype;
  EXPECT_EQ(values_of<int32_t>(context, indices), expected_indices) << scores.shape << ", k " << k << ", " << dtype;
}

Array tied_scores(Shape shape, int levels) {
  Array scores = random_array(shape, 3, -1, 1);
  for (double& x : scores.values) x = std::floor(x * levels) / levels;
  return scores;
}

TEST(TopK, AgreesWithASort) {
  for (const auto& context : devices()) {
    for (const int64_t k : {1, 2, 100, 1024, 1999, 2000, 2500}) expect_top(*context, random_array({2, 2000}, 1), {}, k);
    expect_top(*context, random_array({3, 5000}, 2, -1000, 1000), {4999, 0, 17}, 40);
    expect_top(*context, random_array({2, 4100}, 2, 0, 1), {-3, 5000}, 4096);
    expect_top(*context, random_array({1, 1}, 4), {}, 3);
    expect_top(*context, Array({2, 0}), {}, 3);
  }
}

TEST(TopK, TiesGoToTheLowerIndex) {
  for (const auto& context : devices())
    for (const int levels : {1, 3, 50})
      for (const int64_t k : {1, 7, 500, 2999}) expect_top(*context, tied_scores({2, 3000}, levels), {}, k);
}

TEST(TopK, ScoresThatAreNotOrdinaryNumbers) {
  const std::vector<double> row{NAN, -0.0, 0.0, INFINITY, -INFINITY, 1e-42, -1e-42, 3e38, -3e38, 0.0, -0.0, NAN, -1};
  for (const auto& context : devices())
    for (const int64_t k : {4, 13, 20}) expect_top(*context, Array({1, 13}, row), {}, k);
}

TEST(TopK, OfSixteenBits) {
  for (const auto& context : devices())
    for (const DType dtype : {DType::bf16, DType::f16})
      if (!context->is_cpu() || dtype == DType::bf16)
        for (const int64_t k : {9, 300}) expect_top(*context, random_array({2, 1500}, 5), {1500, 200}, k, dtype);
}

// More keys than fit in shared memory: candidates of all pyramid levels, or of a single map.
TEST(TopK, SortsMoreThanSharedMemoryHolds) {
  for (const auto& context : devices()) {
    expect_top(*context, random_array({2, 5000}, 6), {}, 5000);
    expect_top(*context, tied_scores({2, 9000}, 3), {9000, 4500}, 6000);
    expect_top(*context, random_array({1, 4097}, 7), {}, 4096);
  }
}

TEST(TopK, RefusesWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor scores = context->zeros({2, 5}), values = context->zeros({2, 3}), none;
    const Tensor indices = context->zeros({2, 3}, DType::i32);
    expect_error([&] { top_k(*context, context->zeros({5}), none, values, indices); }, Fault::config, "[rows, n]");
    expect_error([&] { top_k(*context, scores, none, scores, indices); }, Fault::config, "top_k: indices");
    expect_error([&] { top_k(*context, scores, indices, values, indices); }, Fault::config, "top_k: counts");
  }
}

struct NmsCase {
  int64_t rows = 1, k = 1, m = 1;
  Scores boxes{}, scores{};
  Ranks groups{};
  NmsOptions options{};
};

// Corners are small integers, so that many IoUs equal the threshold.
NmsCase crowded_case(int64_t rows, int64_t k, int64_t m, uint32_t extent) {
  NmsCase c{.rows = rows, .k = k, .m = m};
  RandomStream random(11, extent);
  for (int64_t i = 0; i < rows * k; ++i) {
    const auto x = static_cast<float>(random.below(extent)), y = static_cast<float>(random.below(extent));
    const auto w = static_cast<float>(random.below(12)), h = static_cast<float>(random.below(12));
    c.boxes.insert(c.boxes.end(), {x, y, x + w, y + h});
    c.scores.push_back(1 - static_cast<float>(i % k) / static_cast<float>(k));
  }
  return c;
}

void naive_nms(const NmsCase& c, size_t row, Ranks& kept, Ranks& counts) {
  const double margin = c.options.plus_one ? 1 : 0;
  const auto first = row * static_cast<size_t>(c.k), k = static_cast<size_t>(c.k), m = static_cast<size_t>(c.m);
  const auto corner = [&](size_t i, size_t d) { return double{c.boxes[4 * (first + i) + d]}; };
  const auto extent = [&](size_t i, size_t d) { return corner(i, d + 2) - corner(i, d) + margin; };
  const auto suppresses = [&](size_t i, size_t j) {
    if (!c.groups.empty() && c.groups[first + i] != c.groups[first + j]) return false;
    double shared = 1;
    for (size_t d : {0, 1})
      shared *=
          std::max(std::min(corner(i, d + 2), corner(j, d + 2)) - std::max(corner(i, d), corner(j, d)) + margin, 0.0);
    const double area = extent(i, 0) * extent(i, 1) + extent(j, 0) * extent(j, 1) - shared;
    return shared > 0 && static_cast<float>(shared / area) > c.options.threshold;
  };
  std::vector<size_t> chosen;
  for (size_t j = 0; j < k && chosen.size() < m; ++j)
    if (c.scores[first + j] != -INFINITY &&
        std::none_of(chosen.begin(), chosen.end(), [&](size_t i) { return suppresses(i, j); }))
      chosen.push_back(j);
  counts.push_back(static_cast<int32_t>(chosen.size()));
  for (size_t i = 0; i < m; ++i) kept.push_back(i < chosen.size() ? static_cast<int32_t>(chosen[i]) : -1);
}

void expect_nms(const NmsCase& c, const std::string& what) {
  Ranks expected, expected_counts;
  for (size_t row = 0; row < static_cast<size_t>(c.rows); ++row) naive_nms(c, row, expected, expected_counts);
  for (const auto& context : devices()) {
    const Tensor groups = c.groups.empty() ? Tensor() : to_device(*context, {c.rows, c.k}, c.groups);
    const Tensor boxes = to_device(*context, {c.rows, c.k, 4}, c.boxes);
    const Tensor scores = to_device(*context, {c.rows, c.k}, c.scores);
    poison(*context);
    const Tensor kept = context->empty({c.rows, c.m}, DType::i32), counts = context->empty({c.rows}, DType::i32);
    nms(*context, boxes, scores, groups, c.options, kept, counts);
    EXPECT_EQ(values_of<int32_t>(*context, kept), expected) << what;
    EXPECT_EQ(values_of<int32_t>(*context, counts), expected_counts) << what;
  }
}

TEST(Nms, AgreesWithALoopOverPairs) {
  for (const int64_t k : {1, 64, 65, 333})
    for (const int64_t m : {1, 20, 400})
      for (const uint32_t extent : {5u, 40u, 300u})
        for (const bool plus_one : {false, true}) {
          NmsCase c = crowded_case(3, k, m, extent);
          c.options = {.threshold = plus_one ? 0.7f : 0.5f, .plus_one = plus_one};
          expect_nms(c, concat("k ", k, ", m ", m, ", extent ", extent));
        }
}

TEST(Nms, ManyBoxes) { expect_nms(crowded_case(1, 4200, 4200, 200), "many boxes"); }

TEST(Nms, GroupsDoNotSuppressOneAnother) {
  NmsCase c = crowded_case(2, 500, 500, 30);
  for (size_t i = 0; i < 1000; ++i) c.groups.push_back(static_cast<int32_t>(i * i % 7));
  expect_nms(c, "groups");
}

TEST(Nms, WhatHasNoScoreIsNotThere) {
  NmsCase c = crowded_case(2, 200, 150, 20);
  for (size_t i = 120; i < 200; ++i) c.scores[i] = -INFINITY;
  for (size_t i = 200; i < 400; ++i) c.scores[i] = -INFINITY;
  expect_nms(c, "no scores");
}

TEST(Nms, AnIouOfTheThresholdIsKept) {
  // The IoU is one half.
  const NmsCase c{.k = 2, .m = 2, .boxes = {0, 0, 4, 4, 0, 0, 4, 2}, .scores = {2, 1}};
  expect_nms(c, "threshold");
  for (const auto& context : devices()) {
    const Tensor kept = context->empty({1, 2}, DType::i32), counts = context->empty({1}, DType::i32);
    nms(*context, to_device(*context, {1, 2, 4}, c.boxes), to_device(*context, {1, 2}, c.scores), Tensor(), {}, kept,
        counts);
    EXPECT_EQ(values_of<int32_t>(*context, kept), (Ranks{0, 1}));
  }
}

TEST(Nms, NoBoxes) { expect_nms({.rows = 2, .k = 0, .m = 3}, "none"); }

TEST(Nms, RefusesWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor boxes = context->zeros({2, 5, 4}), scores = context->zeros({2, 5}), none;
    const Tensor kept = context->zeros({2, 3}, DType::i32), counts = context->zeros({2}, DType::i32);
    expect_error([&] { nms(*context, scores, scores, none, {}, kept, counts); }, Fault::config, "nms: boxes");
    expect_error([&] { nms(*context, boxes, scores, kept, {}, kept, counts); }, Fault::config, "nms: groups");
    expect_error([&] { nms(*context, boxes, scores, none, {}, counts, counts); }, Fault::config, "kept [rows, m]");
    expect_error([&] { nms(*context, boxes, scores, none, {}, kept, kept); }, Fault::config, "nms: counts");
  }
}

}  // namespace
}  // namespace dtrain
