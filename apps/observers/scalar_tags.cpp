#include "apps/observers/scalar_tags.h"

namespace dtrain::observers {

std::vector<MetricValue> tagged(const ScalarTags& tags, const std::vector<MetricValue>& values) {
  std::vector<MetricValue> scalars;
  for (const MetricValue& value : values) {
    const auto tag = tags.find(value.name);
    if (tag == tags.end())
      scalars.push_back(value);
    else if (!tag->second.empty())
      scalars.push_back({tag->second, value.value});
  }
  return scalars;
}

std::vector<MetricValue> scalars_of(const Stepped& event, double l2_loss, const ScalarTags& tags) {
  std::vector<MetricValue> values = {{"total_loss", event.loss + l2_loss},
                                     {"loss", event.loss},
                                     {"l2_loss", l2_loss},
                                     {"learning_rate", event.learning_rate}};
  values.insert(values.end(), event.metrics.begin(), event.metrics.end());
  return tagged(tags, values);
}

}  // namespace dtrain::observers
