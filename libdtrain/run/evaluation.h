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

// The metrics of one batch, without any other; waits for the device.
std::vector<MetricValue> metrics_of(Context& context, const Loss& loss);

// Asks the task for an evaluation: its progress goes to the observer, every `show_every` batches, which is also when
// several ranks agree on a stop. Collective.
std::future<Evaluation> begin_evaluation(Task& task, Group& group, uint64_t step, int64_t show_every,
                                         Observer& observer, const std::function<bool()>& stop);

bool is_ready(const std::future<Evaluation>& evaluation);

}  // namespace dtrain
