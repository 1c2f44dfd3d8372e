// Loads parameters only: inference needs no optimiser state.
#include "dtrain/run/load_checkpoint.h"

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "dtrain/train/replicas.h"
#include "dtrain/train/weights.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain {
namespace {

void check_identity(const std::string& path, const TrainState& state,
                    const std::map<std::string, std::string>& must_match) {
  for (const auto& [key, expected] : must_match) {
    const auto found = state.identity.find(key);
    if (found != state.identity.end() && found->second != expected)
      throw Error(Fault::checkpoint, fmt::format("{}: {} is {}, expected {}", path, key, found->second, expected));
  }
}

void load(const std::string& file, ParameterStore& store) {
  const WeightReport report = load_weights(store, file, Fault::checkpoint);
  if (!report.complete())
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit the model: {}", file, report.summary()));
}

std::string path_in(const std::string& found) { return found.substr(found.find(' ') + 1); }

}  // namespace

std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& train_dir,
                                                       const std::map<std::string, std::string>& must_match,
                                                       ParameterStore& store, Communicator& communicator, int chief,
                                                       Observer& observer) {
  Group& group = communicator.group();
  std::string found;    // "step path"
  std::string average;  // a file of the chief
  if (group.rank() == chief) {
    TrainState state;
    std::error_code unknown;
    const auto usable = [&](const std::string& candidate) {
      try {
        state = verify_checkpoint(candidate).state;
        return true;
      } catch (const FormatError&) {
        throw;
      } catch (const Error& error) {
        if (error.fault() == Fault::resource) throw;  // not a sign of damage
        observer.noticed({error.what()});
        return false;
      }
    };
    const bool itself = std::filesystem::exists(train_dir + "/model.safetensors", unknown) && usable(train_dir);
    if (const auto path = itself ? std::optional(train_dir) : newest_checkpoint(train_dir, usable))
      found = fmt::format("{} {}", state.step, *path);
    if (!found.empty()) check_identity(path_in(found), state, must_match);
    if (!found.empty() && std::filesystem::exists(path_in(found) + "/averaged.safetensors", unknown))
      average = path_in(found) + "/averaged.safetensors";
  }
  found = group.broadcast(found, chief, "checkpoint");
  if (found.empty()) return std::nullopt;
  average = group.broadcast(average, chief, "average of the checkpoint");
  LoadedCheckpoint loaded{path_in(found), 0};
  read_text(group, chief, found, "checkpoint", [&](const std::string& text) {
    loaded.step = number_in<uint64_t>(std::string_view(text).substr(0, text.find(' ')));
  });
  if (!average.empty()) {
    loaded.average = store.context().empty(store.values().shape());
    if (group.rank() == chief) load(average, store);
    store.context().copy(store.values(), loaded.average);
  }
  if (group.rank() == chief) load(loaded.path + "/model.safetensors", store);
  broadcast_replica(store, communicator, chief, loaded.average);
  return loaded;
}

std::vector<std::string> kept_checkpoints(const std::string& train_dir, size_t n, Group& group, int chief) {
  const std::string folder = train_dir + "/checkpoints";
  std::string steps;  // to evaluate
  if (group.rank() == chief) {
    std::vector<uint64_t> kept = list_checkpoints(folder);
    for (const uint64_t step : kept) require_known_format(checkpoint_path(folder, step));
    std::erase_if(kept, [&](uint64_t step) { return !looks_complete(checkpoint_path(folder, step)); });
    for (const uint64_t step : every_nth(kept, n)) steps += fmt::format("{} ", step);
  }
  steps = group.broadcast(steps, chief, "checkpoints");
  if (steps.empty()) throw Error(Fault::checkpoint, fmt::format("Checkpoint not found in {}", train_dir));
  std::vector<std::string> paths;
  std::istringstream read(steps);
  for (uint64_t step = 0; read >> step;) paths.push_back(checkpoint_path(folder, step));
  return paths;
}

}  // namespace dtrain
