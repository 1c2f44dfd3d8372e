#include "libdtrain/train/step_report.h"

namespace dtrain {

double StepReport::metric(const std::string& name) const {
  for (const MetricValue& metric : metrics)
    if (metric.name == name) return metric.value;
  throw Error(concat("step ", step, " has no metric '", name, "'"));
}

}  // namespace dtrain
