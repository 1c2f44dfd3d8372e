// Reading checkpoints of runs that may still be under way.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/run/observer.h"

namespace dtrain {

struct LoadedCheckpoint {
  std::string path;
  uint64_t step = 0;
  Tensor
      average{};  // the moving average of the parameters, laid out like the store's values(); undefined: none is kept
};

// Loads the parameters, and not the optimizer's state, of the newest complete checkpoint of train_dir, or of train_dir
// itself where that is a checkpoint, into the store of every rank; `chief` alone reads it, and takes no lock.
// `must_match`: entries of TrainState::identity that it must agree with where it has them. Returns its path and the
// step; nothing where there is none. Damaged ones are passed over with a notice. Throws Error(Fault::checkpoint) where
// it is of another model. Collective.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& train_dir,
                                                       const std::map<std::string, std::string>& must_match,
                                                       ParameterStore& store, Communicator& communicator, int chief,
                                                       Observer& observer);

// The paths of every n-th checkpoint of train_dir that is complete, from the oldest on, and of the newest; as the chief
// sees them, and the same on all ranks. Throws Error(Fault::checkpoint) where there is none. Collective.
std::vector<std::string> kept_checkpoints(const std::string& train_dir, size_t n, Group& group, int chief);

}  // namespace dtrain
