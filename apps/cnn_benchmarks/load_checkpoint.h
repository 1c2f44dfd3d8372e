// Reading checkpoints of runs that may still be under way.
#pragma once

#include "apps/cnn_benchmarks/log.h"
#include "apps/cnn_benchmarks/session.h"

namespace dtrain::cnn_benchmarks {

// Loads the parameters of the newest complete checkpoint of train_dir and says so; false where there is none. Throws
// Error(Fault::checkpoint) where it is of another model.
bool load_newest_checkpoint(Session& session, Log& log);

}  // namespace dtrain::cnn_benchmarks
