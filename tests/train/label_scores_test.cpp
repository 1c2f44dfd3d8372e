// Average precision and F1, compared with their definitions.
#include "libdtrain/train/label_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Scores = std::vector<std::pair<float, uint8_t>>;

// Sum over thresholds, from the highest, of precision times the increase of recall.
double reference(const Scores& scores) {
  std::set<float, std::greater<>> thresholds;
  double positives = 0, sum = 0, before = 0;
  for (const auto& [score, target] : scores) {
    thresholds.insert(score);
    positives += target;
  }
  for (const float threshold : thresholds) {
    double found = 0, hits = 0;
    for (const auto& [score, target] : scores)
      if (score >= threshold) {
        ++found;
        hits += target;
      }
    sum += hits / found * (hits / positives - before);
    before = hits / positives;
  }
  return sum;
}

TEST(AveragePrecision, IsThatOfTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Scores scores(1 + random() % 40);
    for (auto& [score, target] : scores) {
      score = static_cast<float>(random() % (round % 2 ? 5 : 1000)) - 2;
      target = random() % 3 == 0;
    }
    scores[0].second = 1;
    EXPECT_NEAR(average_precision(scores).value(), reference(scores), 1e-12);
    std::ranges::shuffle(scores, random);
    EXPECT_EQ(average_precision(scores), average_precision(Scores(scores.rbegin(), scores.rend())));
  }
}

TEST(AveragePrecision, SpecialCases) {
  EXPECT_EQ(average_precision({}), std::nullopt);
  EXPECT_EQ(average_precision({{1, 0}, {2, 0}}), std::nullopt);
  EXPECT_EQ(average_precision({{1, 1}, {2, 1}}), 1);
  EXPECT_EQ(average_precision({{2, 1}, {1, 0}}), 1);
  EXPECT_EQ(average_precision({{1, 1}, {1, 0}}), 0.5);
  // scikit-learn's documentation: average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]) is 0.83.
  EXPECT_NEAR(average_precision({{.1f, 0}, {.4f, 0}, {.35f, 1}, {.8f, 1}}).value(), 5.0 / 6, 1e-12);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(average_precision({{nan, 1}, {0, 0}, {nan, 0}, {1, 0}}), 0.25);
}

TEST(LabelScores, LeavesOutClassesWithoutPositives) {
  LabelScores scores(3);
  scores.add(std::vector<float>{2, -1, 5}, std::vector<float>{1, 1, 0});
  scores.add(std::vector<float>{1, -2, -5}, std::vector<float>{0, 0, 0});
  scores.add(std::vector<float>{-1, 3, -6}, std::vector<float>{1, 1, 0});
  const auto group = make_single_group();
  const std::vector<MetricValue> values = scores.values(*group);
  // Class 0: 2+ 1- -1+; class 1: 3+ -1+ -2-. At 0, class 0 has 1 hit, 1 false alarm, 1 miss; class 1 has 1 hit, 1 miss;
  // class 2 has 1 false alarm.
  EXPECT_NEAR(find_metric(values, "mean_average_precision").value(), (0.5 * (1 + 2.0 / 3) + 1) / 2, 1e-12);
  EXPECT_EQ(find_metric(values, "classes_without_positives"), 1);
  EXPECT_NEAR(find_metric(values, "micro_f1").value(), 4.0 / (4 + 2 + 2), 1e-12);
  EXPECT_NEAR(find_metric(values, "macro_f1").value(), (2.0 / 4 + 2.0 / 3) / 2, 1e-12);
  expect_error([&] { scores.add(std::vector<float>{1}, std::vector<float>{1}); }, Fault::config, "of 3 classes");
}

TEST(LabelScores, HasValuesWithoutSamplesAndInManyBlocks) {
  const auto group = make_single_group();
  EXPECT_EQ(find_metric(LabelScores(2).values(*group), "classes_without_positives"), 2);
  // 500 classes and 5,000 samples are gathered in several blocks.
  LabelScores scores(500);
  std::vector<float> logits(500), targets(500);
  for (int i = 0; i < 5000; ++i) {
    for (size_t c = 0; c < 500; ++c) {
      logits[c] = static_cast<float>(i);
      targets[c] = static_cast<float>(i == 4999 - static_cast<int>(c));
    }
    scores.add(logits, targets);
  }
  double sum = 0;
  for (int c = 0; c < 500; ++c) sum += 1.0 / (c + 1);
  EXPECT_NEAR(find_metric(scores.values(*group), "mean_average_precision").value(), sum / 500, 1e-12);
}

}  // namespace
}  // namespace dtrain
