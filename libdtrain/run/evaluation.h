// Evaluation of whatever is a mean of metrics, over several ranks.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "libdtrain/run/observer.h"
#include "libdtrain/run/task.h"

namespace dtrain {

// What evaluate_batches() goes through.
struct EvaluationLoop {
  int64_t batches = 0;  // at most; the same on all ranks
  // Brings the next batch to where `forward` reads it; returns how many of its samples count, or nothing at the end,
  // which comes after the same number of batches on all ranks.
  std::function<std::optional<int64_t>()> load{};
  std::function<Loss(Tape&)> forward{};  // on a tape of Mode::eval
  int64_t batch = 1;                     // samples of a batch over all ranks, for request.progress
};

// Runs the loop on every rank and sums the metrics over all batches and ranks: each value is the ratio of the sums, and
// "loss" the mean of the batches' totals. The sums stay on the device until the end. Throws Error(Fault::data) where no
// sample counts; an invalid future where request.stop said so. Collective.
std::future<Evaluation> evaluate_batches(Context& context, Group& group, const EvaluationRequest& request,
                                         const EvaluationLoop& loop);

// The metrics of one batch alone, of which `loss` is the forward pass. Waits for the device.
std::vector<MetricValue> metrics_of(Context& context, const std::function<Loss()>& loss);

// Asks the task for an evaluation: its progress goes to the observer, every `show_every` batches, which is also when
// several ranks agree on a stop. Collective.
std::future<Evaluation> begin_evaluation(Task& task, Group& group, uint64_t step, int64_t show_every,
                                         Observer& observer, const std::function<bool()>& stop);

// The same by the parameters and then, where it is defined, by `average`, whose values' names begin with "averaged_".
std::future<Evaluation> begin_evaluations(Task& task, ParameterStore& store, const Tensor& average, Group& group,
                                          uint64_t step, int64_t show_every, Observer& observer,
                                          const std::function<bool()>& stop);

bool is_ready(const std::future<Evaluation>& evaluation);

// True on all ranks where `stop` is true on one. Collective.
bool stop_agreed(Group& group, const std::function<bool()>& stop);

// Evaluates as Run::evaluate does, for a program that does not train. The parameters are those of step `step`, and
// `average`, where it is defined, their moving average, which is evaluated, too; every `show_every` batches are an
// Evaluating event, and several ranks agree on a stop then. Collective.
std::optional<Evaluation> evaluate(Task& task, ParameterStore& store, const Tensor& average, Group& group,
                                   uint64_t step, int64_t show_every, Observer& observer,
                                   const std::function<bool()>& stop);

}  // namespace dtrain
