#include "dtrain/train/loss.h"

#include <algorithm>

#include "libdtrain/ops/step_metrics.h"

namespace dtrain {

Loss::Loss(const Classification& classified)
    : Loss(classified.loss, {{"top_1_accuracy", classified.in_top_1, classified.counts},
                             {"top_5_accuracy", classified.in_top_5, classified.counts}}) {}

std::vector<Tensor> MetricColumns::sums_of(const Loss& loss) {
  DT_CHECK(loss.total.value.defined() && loss.total.value.count() == 1, "loss: expected a total of one element, found ",
           loss.total.shape());
  std::vector<Tensor> sums{loss.total.value}, weights;
  std::vector<Column> metrics;
  for (const Metric& metric : loss.metrics) {
    DT_CHECK(metric.sum.defined(), "metric ", metric.name, ": its sum is undefined");
    sums.push_back(metric.sum);
    Column& column = metrics.emplace_back(Column{metric.name});
    if (!metric.weight) continue;
    size_t i = 0;
    while (i < weights.size() && weights[i].raw() != metric.weight.raw()) ++i;
    if (i == weights.size()) weights.push_back(metric.weight);
    column.weight = static_cast<int>(1 + loss.metrics.size() + i);
  }
  sums.insert(sums.end(), weights.begin(), weights.end());
  DT_CHECK(sums.size() <= kMaxStepSums, "loss: ", sums.size(), " sums of metrics and weights, at most ", kMaxStepSums);
  if (count_ == 0) {
    metrics_ = metrics;
    count_ = static_cast<int>(sums.size());
  }
  DT_CHECK(metrics == metrics_ && sums.size() == static_cast<size_t>(count_),
           "loss: its metrics are others than in the steps before");
  return sums;
}

std::optional<double> find_metric(const std::vector<MetricValue>& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &MetricValue::name);
  return found == values.end() ? std::nullopt : std::optional(found->value);
}

template <class Real>
std::vector<MetricValue> MetricColumns::values(const Real* row, int64_t shares) const {
  std::vector<MetricValue> values;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    const Real weight = metrics_[i].weight < 0 ? static_cast<Real>(shares) : row[metrics_[i].weight];
    values.push_back({metrics_[i].name, weight == 0 ? 0 : row[1 + i] / weight});
  }
  return values;
}

template std::vector<MetricValue> MetricColumns::values(const float*, int64_t) const;
template std::vector<MetricValue> MetricColumns::values(const double*, int64_t) const;

}  // namespace dtrain
