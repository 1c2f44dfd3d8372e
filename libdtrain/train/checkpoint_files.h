// On-disk format of checkpoints: files, manifest, and the directory of checkpoints.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "dtrain/train/checkpoint.h"

namespace dtrain {

// Host copy of a checkpoint's content.
struct CheckpointSnapshot {
  TrainState state;
  std::vector<float> values, buffers;         // whole arenas
  std::vector<float> average{};               // moving average; empty: none
  std::vector<std::vector<float>> optimizer;  // one arena per optimiser state
  uint64_t bytes() const;                     // approximate size of its files
};

// Steps of checkpoints step-<N> in `directory`, ascending, complete or not. Other names, e.g. step-007, are ignored.
std::vector<uint64_t> list_checkpoints(const std::string& directory);

// Every n-th of them, from the first, and the last.
std::vector<uint64_t> every_nth(const std::vector<uint64_t>& steps, size_t n);

// Dangling or cyclic link with a checkpoint's name.
struct BrokenLink {
  uint64_t step = 0;
  std::error_code reason;
  // A cyclic link never was a checkpoint; the target of a dangling one may be on unmounted storage.
  bool is_loop() const { return reason == std::errc::too_many_symbolic_link_levels; }
};
// Ascending by step.
std::vector<BrokenLink> list_broken_links(const std::string& directory);
std::string checkpoint_path(const std::string& directory, uint64_t step);
// Path of the newest checkpoint of `train_dir` for which usable(path) is true; nullopt if there is no such directory.
// Throws Error if the directory cannot be read, and FormatError for a newer checkpoint of an unknown format.
std::optional<std::string> newest_checkpoint(const std::string& train_dir,
                                             const std::function<bool(const std::string& path)>& usable);

// Weight file for `path`: the file itself, model.safetensors of the checkpoint directory `path`, or that of the newest
// complete checkpoint of the train_dir `path`. Throws Error(fault) for any other directory. All of them may be s3://;
// an address without any object is returned unchanged, so that opening it reports the error.
std::string weights_file(const std::string& path, Fault fault = Fault::checkpoint);
// model.safetensors of the checkpoint `url`, or of the newest complete one of the train_dir `url`, on s3://,
// whose manifests tell which are complete; nullopt if there is none. Throws FormatError for a newer checkpoint of an
// unknown format, Error(fault) for a URL that is not s3://BUCKET/PREFIX, Error(Fault::resource) if the list cannot be
// read.
std::optional<std::string> newest_remote_weights(const std::string& url, Fault fault = Fault::checkpoint);

// Writes a checkpoint's files into the new directory `path`, each synced, the manifest last; returns their total size.
// Throws Error(Fault::resource).
uint64_t write_checkpoint(FileSystem& files, const std::string& path, const ParameterStore& store,
                          const CheckpointSnapshot& snapshot);

struct VerifiedCheckpoint {
  TrainState state;
  std::vector<std::string> extra;  // files that the manifest does not list
};

// Reads and verifies all files of a checkpoint. Throws Error(Fault::checkpoint) naming the first file that differs from
// the manifest or has implausible values.
VerifiedCheckpoint verify_checkpoint(const std::string& path);
// Throws FormatError for a checkpoint of a format that this version does not read. Unlike a damaged one, such a
// checkpoint must not be passed over: the run would go back to an older one and set it aside.
void require_known_format(const std::string& path);
// Whether file sizes match the manifest; does not read the files.
bool looks_complete(const std::string& path);

// Serialisation of state.json and its parser; `path` is for errors. Throws Error(Fault::checkpoint) for malformed text
// or beyond JsonLimits.
std::string train_state_text(const TrainState& state);
TrainState train_state_from(const std::string& text, const std::string& path);
// Loads all tensors into the store and into `average` if defined, see CheckpointOptions. Throws
// Error(Fault::checkpoint) if names or shapes differ from the store's.
void load_tensors(const std::string& path, ParameterStore& store, const Tensor& average = {});

// Removes files left by killed writers in `directory`, but no links; returns their number.
int remove_leftovers(FileSystem& files, const std::string& directory);

}  // namespace dtrain
