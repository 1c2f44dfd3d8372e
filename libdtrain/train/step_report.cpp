#include "dtrain/train/step_report.h"

namespace dtrain {

double StepReport::metric(const std::string& name) const {
  if (const auto found = find_metric(metrics, name)) return *found;
  throw Error(concat("step ", step, " has no metric '", name, "'"));
}

}  // namespace dtrain
