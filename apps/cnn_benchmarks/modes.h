// Run modes: training, evaluation of checkpoints or weights, inference benchmark.
#pragma once

#include "apps/cli/image_task.h"
#include "apps/cli/log.h"
#include "apps/cnn_benchmarks/training_job.h"

namespace dtrain::cnn_benchmarks {

// Runs the configured mode. Returns the exit code: 0, or cli::kStopped after a stop request. Throws
// Error(Fault::numeric) for a non-finite loss or gradient.
// `own_log` replaces tf_cnn_benchmarks' log; null: that log.
int run_mode(TrainingJob& job, cli::Log& log, Observer* own_log = nullptr);

// Logs cli::report_input() of the training records of all ranks, unless the data is synthetic. Collective.
void report_trained(const TrainingJob& job, const cli::ImageTask& task, cli::Log& log);

// --find_learning_rate.
int find_learning_rate(TrainingJob& job, cli::Log& log);

}  // namespace dtrain::cnn_benchmarks
