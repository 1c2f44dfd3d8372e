// The modes of the program: training, evaluation of checkpoints or weights, inference at full speed.
#pragma once

#include "apps/cli/image_task.h"
#include "apps/cli/log.h"
#include "apps/cnn_benchmarks/session.h"

namespace dtrain::cnn_benchmarks {

// Runs the mode of the configuration and returns the exit code: 0, or cli::kStopped where a request to stop ended it.
// Throws Error(Fault::numeric) on a loss or a gradient that is not finite.
// `own_log` takes the place of tf_cnn_benchmarks' log of the events; null: that log.
int run_mode(Session& session, cli::Log& log, Observer* own_log = nullptr);

// Logs cli::report_input() of the training records that all ranks have read; nothing for synthetic data. Collective.
void report_trained(const Session& session, const cli::ImageTask& task, cli::Log& log);

// --find_learning_rate.
int find_learning_rate(Session& session, cli::Log& log);

}  // namespace dtrain::cnn_benchmarks
