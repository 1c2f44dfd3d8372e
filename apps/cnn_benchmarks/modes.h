// Run modes: training, evaluation of checkpoints or weights, inference benchmark.
#pragma once

#include "apps/cli/log.h"
#include "apps/cnn_benchmarks/training_job.h"

namespace dtrain::cnn_benchmarks {

// Runs the configured mode. Returns the exit code: 0, or cli::kStopped after a stop request. Throws
// Error(Fault::numeric) for a non-finite loss or gradient.
// `own_log` replaces tf_cnn_benchmarks' log; null: that log.
int run_mode(TrainingJob& job, cli::Log& log, Observer* own_log = nullptr);

}  // namespace dtrain::cnn_benchmarks
