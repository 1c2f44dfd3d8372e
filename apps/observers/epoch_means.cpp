#include "apps/observers/epoch_means.h"

#include <utility>

namespace dtrain::observers {
namespace {

bool is_last(const std::string& name) { return name == "learning_rate" || name == "l2_loss"; }

}  // namespace

void EpochMeans::add(const Stepped& event) {
  if (event.shown) l2_loss_ = event.l2_loss;
  ++steps_;
  for (const MetricValue& scalar : scalars_of(event, l2_loss_, {})) {
    double& sum = sums_[scalar.name];
    sum = is_last(scalar.name) ? scalar.value : sum + scalar.value;
  }
}

std::vector<MetricValue> EpochMeans::take(const ScalarTags& tags) {
  const auto steps = static_cast<double>(std::exchange(steps_, 0));
  std::vector<MetricValue> means;
  for (const auto& [name, sum] : std::exchange(sums_, {})) means.push_back({name, is_last(name) ? sum : sum / steps});
  return tagged(tags, means);
}

}  // namespace dtrain::observers
