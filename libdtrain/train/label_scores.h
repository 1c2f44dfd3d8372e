// LabelScores: mean average precision and F1 of multi-label classification.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dtrain/distributed/group.h"
#include "dtrain/train/loss.h"

namespace dtrain {

// Average precision of scikit-learn's average_precision_score: the sum over decreasing thresholds of precision times
// the increase of recall; equal scores share a threshold. Elements: score, and 1 for a positive, else 0. Nothing
// without positives. NaN counts as the lowest score.
std::optional<double> average_precision(std::vector<std::pair<float, uint8_t>> scores);

// Collects the scores of evaluated samples, five bytes per sample and class.
class LabelScores {
 public:
  explicit LabelScores(int64_t classes);
  // Adds a sample: logits, and targets 0 or 1, of all classes.
  void add(std::span<const float> logits, std::span<const float> targets);
  // Over the samples of all ranks:
  //   mean_average_precision: mean of average_precision() over classes with positives; 0 without any
  //   classes_without_positives: number of the others
  //   micro_f1, macro_f1: F1 = 2 TP / (2 TP + FP + FN) of the positive logits, of summed counts, and the mean over
  //     classes with positives
  // Collective; equal on all ranks.
  std::vector<MetricValue> values(Group& group) const;

 private:
  size_t classes_;
  std::vector<float> logits_;  // by sample
  std::vector<uint8_t> targets_;
};

}  // namespace dtrain
