// Evaluation of mean metrics over several ranks.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "dtrain/run/observer.h"
#include "dtrain/run/task.h"

namespace dtrain {

// Batches of evaluate_batches().
struct EvaluationLoop {
  int64_t batches = 0;  // upper limit, equal on all ranks
  // Loads the next batch for `forward`; returns its number of valid samples, nullopt at the end, which comes after the
  // same number of batches on all ranks.
  std::function<std::optional<int64_t>()> load{};
  std::function<Loss(Tape&)> forward{};  // on a tape in Mode::eval
  int64_t batch = 1;                     // samples per batch over all ranks, for request.progress
};

// Runs the loop on every rank and reduces the metrics over all batches and ranks: each value is a ratio of sums, "loss"
// the mean of the batches' totals. Sums stay on the device until the end. Throws Error(Fault::data) without valid
// samples; returns an invalid future if request.stop was true. Collective.
std::future<Evaluation> evaluate_batches(Context& context, Group& group, const EvaluationRequest& request,
                                         const EvaluationLoop& loop);

// Metrics of a single batch with forward pass `loss`. Waits for the device.
std::vector<MetricValue> metrics_of(Context& context, const std::function<Loss()>& loss);

// Starts an evaluation of the task: progress goes to the observer every `show_every` batches, when ranks also agree on
// a stop. Collective.
std::future<Evaluation> begin_evaluation(Task& task, Group& group, uint64_t step, int64_t show_every,
                                         Observer& observer, const std::function<bool()>& stop);

// Evaluates the parameters and then, if defined, `average`, whose values' names begin with "averaged_".
std::future<Evaluation> begin_evaluations(Task& task, ParameterStore& store, const Tensor& average, Group& group,
                                          uint64_t step, int64_t show_every, Observer& observer,
                                          const std::function<bool()>& stop);

bool is_ready(const std::future<Evaluation>& evaluation);

// Logical OR of `stop` over ranks. Collective.
bool stop_agreed(Group& group, const std::function<bool()>& stop);

// Evaluates as Run::evaluate does, in a program that does not train. `step`: of the parameters. `average`, if defined:
// their moving average, evaluated too. Every `show_every` batches an Evaluating event is sent and ranks agree on a
// stop. Collective.
std::optional<Evaluation> evaluate(Task& task, ParameterStore& store, const Tensor& average, Group& group,
                                   uint64_t step, int64_t show_every, Observer& observer,
                                   const std::function<bool()>& stop);

}  // namespace dtrain
