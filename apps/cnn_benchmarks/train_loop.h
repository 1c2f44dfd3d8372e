// Training from start or checkpoint to the planned end, and inference at full speed.
#pragma once

#include "apps/cnn_benchmarks/log.h"
#include "apps/cnn_benchmarks/session.h"

namespace dtrain::cnn_benchmarks {

// Returns the exit code: 0, or cli::kStopped after a checkpoint on request. Throws Error(Fault::numeric) on a loss or a
// gradient that is not finite.
int run_training(Session& session, Log& log);

// --forward_only: the model, from the newest checkpoint of train_dir where there is one, in inference mode on training
// images; nothing is updated or saved.
int run_forward_only(Session& session, Log& log);

}  // namespace dtrain::cnn_benchmarks
