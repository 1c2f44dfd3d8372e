// Checkpoints: a directory per step, committed by a checksummed manifest that is written last.
//   <train_dir>/checkpoints/step-<N>/{model.safetensors, state.safetensors, state.json, MANIFEST.json}
// and averaged.safetensors where an average of the parameters is kept, which can be loaded in place of the model's.
// <train_dir>/best is a link to the one that is best by what its owner goes by.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/io/file_system.h"

namespace dtrain {

// What is not a tensor: the cursor, the seeds, the configuration. `identity` is what must match on resume (model,
// classes, data set, optimiser, batch); `settings` is recorded and a change of it is only announced (threads, workers).
// All text is UTF-8.
struct TrainState {
  uint64_t step = 0;
  uint64_t cursor = 0;  // samples consumed
  StepState device{};   // loss scale and skipped updates
  std::map<std::string, std::string> identity{};
  std::map<std::string, std::string> settings{};
  // What the files of weights say of themselves, as metadata; see WeightsRecord. It is not restored.
  std::map<std::string, std::string> weights{};
};

struct CheckpointOptions {
  std::string train_dir{};
  int64_t keep = 5;  // at least 2 are kept
  bool asynchronous = true;
  // A moving average of the parameters, laid out like the store's values(): saved, and restored as it was, or from the
  // parameters of a checkpoint that has none. Undefined: none is kept.
  Tensor average{};
  int max_failures = 3;  // consecutive saves that may fail before save() throws the last Error, as of a full disk
};

struct SaveReport {
  uint64_t step = 0;
  std::string path;
  uint64_t bytes = 0;
  double seconds = 0;  // from snapshot to verified on the disk
};

struct RestoreReport {
  TrainState state;
  std::string path;
  std::vector<std::string> notices;  // damaged checkpoints passed over, extra files ignored, settings that changed
};

// Owns a train_dir: locks it for the life of the object (flock), so that a second writer is refused with the holder's
// pid, and removes what a killed run left unfinished. train_dir and its folder `checkpoints` may be links to folders
// elsewhere. A checkpoint that is a link is read like any other, and neither it nor what it leads to is ever removed.
class Checkpointer {
 public:
  // `warn` gets a line for people about what went wrong but does not stop training; it may be called from the writer's
  // thread, and may be empty. Throws Error(Fault::config) where another process holds train_dir, it is no directory
  // or no name, or its file `lock` is a link or somebody else's, Error(Fault::resource) where it cannot be written.
  Checkpointer(ParameterStore& store, CheckpointOptions options, std::function<void(const std::string&)> warn,
               FileSystem& files = system_files());
  // Waits for the save under way.
  ~Checkpointer();

  // Snapshots arenas and state, then writes in the background (or here, where not asynchronous). Waits for an earlier
  // save. A failed save is counted and warned of; training goes on. Does nothing for the step last saved or restored.
  // Later checkpoints, of a future that this run has abandoned, are set aside under another name when this one commits.
  // Throws what `warn` threw in the background; Error before ParameterStore::allocate(), as do restore_latest() and
  // restore().
  void save(const TrainState& state);
  // Waits for the save under way. What the last save() wrote, or this run was restored from; none where a save failed.
  std::optional<SaveReport> wait();
  // The same without waiting: none while a save is under way.
  std::optional<SaveReport> finished();
  // True while a save is under way; waits so many seconds for its end.
  bool busy(double seconds = 0) const;
  // The checkpoint of `step`, which is there or will be saved, is the best: once it is complete <train_dir>/best leads
  // to it, in one step, and however old it gets it is not removed. That of an earlier call is one like others from then
  // on. Where a save is under way the link is made at its end; one that cannot be made is warned of. Waits for no disk.
  void keep_best(uint64_t step);
  // That of `step` is not removed either until the next call, because it may turn out to be the best.
  void keep_candidate(uint64_t step);
  // The newest complete checkpoint, verified by its checksums, loaded into the store; none in an empty directory.
  // Throws Error(Fault::checkpoint) where all are damaged or links whose targets are missing, or where
  // `expected.identity` differs (the difference is shown). Settings of `expected` that differ are among the notices.
  // After an error the store's values are undefined.
  std::optional<RestoreReport> restore_latest(const TrainState& expected);
  // The same for the checkpoint directory `path`, of this train_dir or another.
  RestoreReport restore(const std::string& path, const TrainState& expected);
  // Path of the newest checkpoint whose files are all there.
  std::optional<std::string> latest() const;

 private:
  struct Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace dtrain
