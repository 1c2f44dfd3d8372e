// Checkpoints: a directory per step, committed by a checksummed manifest that is written last.
//   <train_dir>/checkpoints/step-<N>/{model.safetensors, state.safetensors, state.json, MANIFEST.json}
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"

namespace dtrain {

// What is not a tensor: the cursor, the seeds, the configuration. `identity` is what must match on resume (model,
// classes, data set, optimiser, batch); `settings` is recorded and a change of it is only announced (threads, workers).
struct TrainState {
  uint64_t step = 0;
  uint64_t cursor = 0;  // samples consumed
  std::map<std::string, std::string> identity;
  std::map<std::string, std::string> settings;
};

struct CheckpointOptions {
  std::string train_dir;
  int keep = 5;  // at least 2 are kept
  bool asynchronous = true;
  int max_failures = 3;  // consecutive saves that may fail (a full disk) before save() throws Error(Fault::checkpoint)
};

struct RestoreReport {
  TrainState state;
  std::string path;
  std::vector<std::string> notices;  // older or damaged checkpoints passed over, settings that changed
};

// Owns a train_dir: locks it for the life of the object (flock), so that a second writer is refused with the holder's
// pid.
class Checkpointer {
 public:
  Checkpointer(ParameterStore& store, CheckpointOptions options, std::function<void(const std::string&)> warn);
  ~Checkpointer();

  // Snapshots arenas and state, then writes in the background (or here, where not asynchronous). Waits for an earlier
  // save.
  void save(const TrainState& state);
  // Waits for the save under way; true if a checkpoint of `step` exists afterwards.
  bool wait();
  // The newest complete checkpoint, verified by its checksums, loaded into the store; none in an empty directory.
  // Throws Error(Fault::checkpoint) where all are damaged, or where `expected.identity` differs (the difference is
  // shown).
  std::optional<RestoreReport> restore_latest(const TrainState& expected);
  RestoreReport restore(const std::string& path, const TrainState& expected);
  // Path of the newest complete checkpoint.
  std::optional<std::string> latest() const;

 private:
  struct Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace dtrain
