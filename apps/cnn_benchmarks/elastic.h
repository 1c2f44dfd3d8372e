// Going on with another number of ranks.
#pragma once

#include "apps/cnn_benchmarks/config.h"
#include "libdtrain/dist/group.h"

namespace dtrain::cnn_benchmarks {

// Where train_dir holds a checkpoint that this run will go on from, the number of micro-steps is set so that the global
// batch stays that of the checkpoint, with a notice: samples, order and learning rate go on as they would have on the
// ranks of before. Throws Error(Fault::config) where the ranks cannot share that batch, with those numbers that can.
// Collective.
void keep_global_batch(Config& config, Group& group);

}  // namespace dtrain::cnn_benchmarks
