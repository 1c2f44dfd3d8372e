// What a checkpoint is on the disk: its files, their manifest, and the directory that holds many of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "libdtrain/train/checkpoint.h"

namespace dtrain {

// A copy in host memory of all that a checkpoint holds.
struct CheckpointSnapshot {
  TrainState state;
  std::vector<float> values, buffers;         // whole arenas
  std::vector<float> average{};               // that of the average of the values; empty where there is none
  std::vector<std::vector<float>> optimizer;  // one arena per state of the optimiser
  uint64_t bytes() const;                     // about what its files take
};

// Steps of the checkpoints step-<N> in `directory`, ascending; complete or not. Folders of other names, step-007 for
// instance, are none.
std::vector<uint64_t> list_checkpoints(const std::string& directory);

// A link of such a name that cannot be followed.
struct BrokenLink {
  uint64_t step = 0;
  std::error_code reason;
  // A link in a loop has never led to a checkpoint; the target of another may be on storage that is not mounted now.
  bool is_loop() const { return reason == std::errc::too_many_symbolic_link_levels; }
};
// Ascending by steps.
std::vector<BrokenLink> list_broken_links(const std::string& directory);
std::string checkpoint_path(const std::string& directory, uint64_t step);
// The path of the newest checkpoint of `train_dir` for which usable(path) is true; none where there is no such folder.
// Throws Error where the folder cannot be read.
std::optional<std::string> newest_checkpoint(const std::string& train_dir,
                                             const std::function<bool(const std::string& path)>& usable);

// The file of weights that `path` stands for: the file itself, model.safetensors of the checkpoint's folder `path`, or
// that of the newest complete checkpoint of the train_dir `path`. Throws Error(fault) for a folder that is neither.
std::string weights_file(const std::string& path, Fault fault = Fault::checkpoint);

// Writes the files of a checkpoint into the new directory `path`, each synced, the manifest last; returns their size.
// Throws Error(Fault::resource).
uint64_t write_checkpoint(FileSystem& files, const std::string& path, const ParameterStore& store,
                          const CheckpointSnapshot& snapshot);

struct VerifiedCheckpoint {
  TrainState state;
  std::vector<std::string> extra;  // names of files that the manifest does not list
};

// Reads all files of a checkpoint. Throws Error(Fault::checkpoint) naming the first one that is not what the manifest
// says, or holds a number that no run has written.
VerifiedCheckpoint verify_checkpoint(const std::string& path);
// Whether sizes are as the manifest says; the files are not read.
bool looks_complete(const std::string& path);

// The text of state.json, and back; `path` names it in errors. Throws Error(Fault::checkpoint) where it is no such text
// or exceeds JsonLimits.
std::string train_state_text(const TrainState& state);
TrainState train_state_from(const std::string& text, const std::string& path);
// Loads every tensor into the store and, where it is defined, the average, see CheckpointOptions; throws
// Error(Fault::checkpoint) where names or shapes differ from the store's.
void load_tensors(const std::string& path, ParameterStore& store, const Tensor& average = {});

// Removes what killed writers left in `directory`, and no link; returns how many.
int remove_leftovers(FileSystem& files, const std::string& directory);

}  // namespace dtrain
