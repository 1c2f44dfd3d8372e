// --find_learning_rate: learning-rate range test; nothing is saved.
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/cnn_benchmarks/classification_task.h"
#include "apps/cnn_benchmarks/modes.h"
#include "apps/cnn_benchmarks/run_options.h"

namespace dtrain::cnn_benchmarks {

int find_learning_rate(TrainingJob& job, cli::Log& log) {
  const Flags& f = job.settings.flags;
  Optimizer optimizer(job.store, f.optimizer.options());
  ClassificationTask task(job);
  observers::TfCnnLogOptions options = log_options(job);
  options.speed.warmup_steps = 0;
  observers::TfCnnLog steps(log, std::move(options), *job.context, *job.communicator);
  const auto sweep = sweep_learning_rate(task, optimizer, job.store, trainer_options(job), job.group, run_options(job),
                                         f.rate_finder.options(), {&steps}, cli::stop_requested);
  report_trained(job, task, log);
  if (!sweep) return cli::kStopped;
  f.rate_finder.report(*sweep, log, job.is_chief());
  return 0;
}

}  // namespace dtrain::cnn_benchmarks
