// Loss: what a step minimises, and the named metrics that it reports beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libdtrain/autograd/tape.h"
#include "libdtrain/ops/loss.h"

namespace dtrain {

// A number that is reported as the ratio of two sums over the micro-steps and ranks of a step, or over the batches of
// an evaluation. Both stay on the device until then.
struct Metric {
  std::string name;
  // f32 of any shape: its elements are added up.
  Tensor sum{};
  // Likewise; metrics that share a weight are given the same tensor. Undefined: each micro-step of each rank weighs 1.
  Tensor weight{};
};

// `total` [1] is minimised; sum up several losses by their factors to make one, and name each in `metrics`. A Var alone
// is a loss without further metrics.
struct Loss {
  Var total;
  std::vector<Metric> metrics{};

  Loss(Var scalar) : total(std::move(scalar)) {}  // NOLINT: meant to convert
  Loss(Var scalar, std::vector<Metric> named) : total(std::move(scalar)), metrics(std::move(named)) {}
  // With the metrics "top_1_accuracy" and "top_5_accuracy", shares of the rows that count.
  Loss(const Classification& classified);  // NOLINT: meant to convert
};

struct MetricValue {
  std::string name;
  double value = 0;
  bool operator==(const MetricValue&) const = default;
};
// The value of this name, if it is there.
std::optional<double> find_metric(const std::vector<MetricValue>& values, const std::string& name);

// Which column of a row of sums holds what: the total first, then each metric's sum, then each distinct weight.
class MetricColumns {
 public:
  // The columns' tensors. The first call fixes the names and what shares a weight. Throws Error where a later loss has
  // others, where a tensor is not f32 or where there are more than kMaxStepSums columns.
  std::vector<Tensor> sums_of(const Loss& loss);
  // 0 before the first loss.
  int count() const { return count_; }
  // The mean of the totals: `row` holds the sums over `shares` micro-steps in all.
  static float total(const float* row, int shares) { return row[0] / static_cast<float>(shares); }
  // The metrics, computed in the type of the row, float or double. One whose weights sum to 0 is 0: there was nothing
  // to measure.
  template <class Real>
  std::vector<MetricValue> values(const Real* row, int64_t shares) const;

 private:
  struct Column {
    std::string name;
    int weight = -1;  // its column; -1: the number of shares
    bool operator==(const Column&) const = default;
  };
  std::vector<Column> metrics_;
  int count_ = 0;
};

}  // namespace dtrain
