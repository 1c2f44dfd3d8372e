#include "dtrain/run/task.h"

namespace dtrain {

double Evaluation::value(const std::string& name) const {
  if (const auto found = find_metric(values, name)) return *found;
  throw Error(concat("the evaluation has no value '", name, "'"));
}

std::future<Evaluation> Task::evaluate(const EvaluationRequest&) {
  throw Error("this task has no evaluation: override Task::evaluate, or disable evaluation");
}

}  // namespace dtrain
