// Loss: the minimised scalar and named metrics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrain/autograd/tape.h"
#include "dtrain/ops/loss.h"

namespace dtrain {

// Metric reported as the ratio of two sums over the micro-steps and ranks of a step, or over an evaluation. Both stay
// on the device until then.
struct Metric {
  std::string name;
  // f32 of any shape: its elements are summed.
  Tensor sum{};
  // As `sum`; metrics with a common weight share the tensor. Undefined: weight 1 per micro-step and rank.
  Tensor weight{};
};

// `total` [1] is minimised; combine several losses by weighted_sum and name each in `metrics`. A Var converts to a loss
// without metrics.
struct Loss {
  Var total;
  std::vector<Metric> metrics{};

  Loss(Var scalar) : total(std::move(scalar)) {}  // NOLINT: meant to convert
  Loss(Var scalar, std::vector<Metric> named) : total(std::move(scalar)), metrics(std::move(named)) {}
  // With the metrics "top_1_accuracy" and "top_5_accuracy" over unmasked rows.
  Loss(const Classification& classified);  // NOLINT: meant to convert
};

struct MetricValue {
  std::string name;
  double value = 0;
  bool operator==(const MetricValue&) const = default;
};
// Value of this name, if present.
std::optional<double> find_metric(const std::vector<MetricValue>& values, const std::string& name);

// Column layout of a row of sums: total, sum of each metric, each distinct weight.
class MetricColumns {
 public:
  // Tensors of the columns. The first call fixes names and shared weights. Throws Error if a later loss differs, a
  // tensor is not f32, or there are more than kMaxStepSums columns.
  std::vector<Tensor> sums_of(const Loss& loss);
  // 0 before the first loss.
  int count() const { return count_; }
  // Mean total: `row` holds sums over `shares` micro-steps of all ranks.
  static float total(const float* row, int shares) { return row[0] / static_cast<float>(shares); }
  // Metrics in the type of the row, float or double. Metrics with weight 0 are 0.
  template <class Real>
  std::vector<MetricValue> values(const Real* row, int64_t shares) const;

 private:
  struct Column {
    std::string name;
    int weight = -1;  // column of its weight; -1: number of shares
    bool operator==(const Column&) const = default;
  };
  std::vector<Column> metrics_;
  int count_ = 0;
};

}  // namespace dtrain
