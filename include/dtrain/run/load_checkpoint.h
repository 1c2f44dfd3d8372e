// Loading of checkpoints from runs that may still be in progress.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/distributed/communicator.h"
#include "dtrain/run/observer.h"

namespace dtrain {

struct LoadedCheckpoint {
  std::string path;
  uint64_t step = 0;
  Tensor average{};  // moving average of the parameters, laid out like the store's values(); undefined: none
};

// Loads parameters, without optimiser state, of the newest complete checkpoint of train_dir, or of train_dir itself if
// it is a checkpoint, on every rank; only `chief` reads it, without locking. `must_match`: entries of
// TrainState::identity to compare where present. Returns path and step; nullopt if there is none. Damaged checkpoints
// are skipped with a notice. Throws Error(Fault::checkpoint) for another model. Collective.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& train_dir,
                                                       const std::map<std::string, std::string>& must_match,
                                                       ParameterStore& store, Communicator& communicator, int chief,
                                                       Observer& observer);

// Paths of every n-th complete checkpoint of train_dir, from the oldest, and of the newest; as the chief sees them,
// equal on all ranks. Throws Error(Fault::checkpoint) if there is none. Collective.
std::vector<std::string> kept_checkpoints(const std::string& train_dir, size_t n, Group& group, int chief);

}  // namespace dtrain
