// Checkpoints: one directory per step, committed by a checksummed manifest that is written last.
//   <train_dir>/checkpoints/step-<N>/{model.safetensors, state.safetensors, state.json, MANIFEST.json}
// plus averaged.safetensors, loadable as weights, if a moving average of the parameters is kept. <train_dir>/best links
// to the best checkpoint by the caller's criterion.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/io/file_system.h"

namespace dtrain {

// Non-tensor state: input position, seeds, configuration. `identity` must match on resume (model, classes, data set,
// optimiser, batch); changed `settings` (threads, workers) only give a notice. UTF-8.
struct TrainState {
  uint64_t step = 0;
  uint64_t cursor = 0;  // samples consumed
  StepState device{};   // loss scale and skipped updates
  std::map<std::string, std::string> identity{};
  std::map<std::string, std::string> settings{};
  // Metadata of the weight files, see WeightsRecord. Not restored.
  std::map<std::string, std::string> weights{};
};

// A checkpoint that is complete on disk, to be copied elsewhere.
struct CommittedCheckpoint {
  uint64_t step = 0;
  std::string path{};
  int64_t keep = 0;                  // number of newest checkpoints to keep
  std::vector<uint64_t> kept_too{};  // steps of the best checkpoint and of a candidate
};

struct CheckpointOptions {
  std::string train_dir{};
  int64_t keep = 5;  // number of checkpoints to keep, at least 2
  bool asynchronous = true;
  // Moving average of the parameters, laid out like the store's values(): saved and restored; initialised from the
  // parameters of a checkpoint without one. Undefined: none.
  Tensor average{};
  int max_failures = 3;  // consecutive failed saves after which save() throws the last Error, e.g. a full disk
  // Copies a checkpoint to other storage; none: not copied. Called on the writer's thread once the checkpoint is
  // verified on disk. An exception makes the save a failed one, whose checkpoint stays on disk; Error(Fault::config)
  // ends the run at the next save.
  std::function<void(const CommittedCheckpoint&)> publish{};
};

struct SaveReport {
  uint64_t step = 0;
  std::string path;
  uint64_t bytes = 0;
  double seconds = 0;  // from the snapshot until verified on disk
};

struct RestoreReport {
  TrainState state;
  std::string path;
  std::vector<std::string> notices;  // damaged checkpoints skipped, extra files ignored, changed settings
};

// Owner of a train_dir: locks it (flock) against a second writer, whose error names the holder's pid, and removes
// unfinished files of killed runs. train_dir and `checkpoints` may be links. A checkpoint that is a link is read
// normally; neither link nor target is ever removed.
class Checkpointer {
 public:
  // `warn` receives one line about a non-fatal failure, possibly on the writer thread; may be empty. Throws
  // Error(Fault::config) if another process holds train_dir, it is not a directory or empty, or its file `lock` is a
  // link or foreign; Error(Fault::resource) if it cannot be written.
  Checkpointer(ParameterStore& store, CheckpointOptions options, std::function<void(const std::string&)> warn,
               FileSystem& files = system_files());
  // Waits for a save in progress.
  ~Checkpointer();

  // Snapshots arenas and state, then writes in the background (or synchronously if not asynchronous). Waits for a
  // previous save. Failed saves are counted and reported; training continues. No-op for the step last saved or
  // restored. Checkpoints of later steps, left by an abandoned run, are renamed when this one commits. Throws
  // exceptions that `warn` threw in the background; Error before ParameterStore::allocate(), as do restore_latest() and
  // restore().
  void save(const TrainState& state);
  // Waits for a save in progress. Returns the result of the last save(), or the restored checkpoint; nullopt if a save
  // failed.
  std::optional<SaveReport> wait();
  // The same without waiting: nullopt during a save.
  std::optional<SaveReport> finished();
  // Whether a save is in progress; waits up to `seconds` for its end.
  bool busy(double seconds = 0) const;
  // Marks the checkpoint of `step`, existing or to be saved, as best: once complete, <train_dir>/best links to it
  // (atomically) and it is never pruned. Replaces the previous one. During a save the link is made at its end; a
  // failure gives a warning. Never waits for the disk.
  void keep_best(uint64_t step);
  // Also protects the checkpoint of `step` until the next call: it may become the best.
  void keep_candidate(uint64_t step);
  // Loads the newest complete checkpoint, verified by checksums, into the store; nullopt for an empty directory. Throws
  // Error(Fault::checkpoint) if all are damaged or dangling links, or if `expected.identity` differs (showing the
  // difference). Changed settings are among the notices. After an error the store's values are undefined.
  std::optional<RestoreReport> restore_latest(const TrainState& expected);
  // The same for the checkpoint directory `path`, of any train_dir.
  RestoreReport restore(const std::string& path, const TrainState& expected);
  // Path of the newest checkpoint with all files present.
  std::optional<std::string> latest() const;

 private:
  struct Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace dtrain
