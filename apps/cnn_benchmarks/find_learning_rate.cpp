// --find_learning_rate: learning-rate range test; nothing is saved.
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/cnn_benchmarks/classification_task.h"
#include "apps/cnn_benchmarks/modes.h"
#include "apps/cnn_benchmarks/run_options.h"

namespace dtrain::cnn_benchmarks {

int find_learning_rate(Session& session, cli::Log& log) {
  const Flags& f = session.config.flags;
  Optimizer optimizer(session.store, f.optimizer.options());
  ClassificationTask task(session);
  observers::TfCnnLogOptions options = log_options(session);
  options.speed.warmup_steps = 0;
  observers::TfCnnLog steps(log, std::move(options), *session.context, *session.communicator);
  const auto sweep = sweep_learning_rate(task, optimizer, session.store, trainer_options(session), session.group,
                                         run_options(session), f.rate_finder.options(), {&steps}, cli::stop_requested);
  report_trained(session, task, log);
  if (!sweep) return cli::kStopped;
  f.rate_finder.report(*sweep, log, session.is_chief());
  return 0;
}

}  // namespace dtrain::cnn_benchmarks
