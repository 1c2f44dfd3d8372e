#include "libdtrain/run/task.h"

namespace dtrain {

double Evaluation::value(const std::string& name) const {
  for (const MetricValue& value : values)
    if (value.name == name) return value.value;
  throw Error(concat("the evaluation has no value '", name, "'"));
}

std::future<Evaluation> Task::evaluate(const EvaluationRequest&) {
  throw Error("this task has no evaluation: override Task::evaluate, or ask for none");
}

}  // namespace dtrain
