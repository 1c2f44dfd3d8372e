// Parameters only: the optimiser's state is not needed to look at what a model has learnt.
#include "apps/cnn_benchmarks/load_checkpoint.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/replicas.h"
#include "libdtrain/train/weights.h"

namespace dtrain::cnn_benchmarks {
namespace {

// The newest complete checkpoint, verified. Reads only: a run that is still training holds the lock of train_dir.
std::optional<std::string> newest_checkpoint(const std::string& train_dir, Log& log) {
  const std::string directory = train_dir + "/checkpoints";
  if (!std::filesystem::is_directory(directory)) return std::nullopt;
  const std::vector<uint64_t> steps = list_checkpoints(directory);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = checkpoint_path(directory, *step);
    try {
      verify_checkpoint(path);
      return path;
    } catch (const Error& error) {
      log.notice(error.what());
    }
  }
  return std::nullopt;
}

void load(Session& session, const std::string& path) {
  const TrainState state = read_train_state(path);
  const TrainState expected = session.description();
  std::vector<const char*> keys{"model", "classes"};
  // Pixels on another scale than in training cost accuracy without a word.
  if (!session.config.flags.data_dir.empty()) keys.push_back("preprocessing");
  for (const char* key : keys) {
    const auto found = state.identity.find(key);
    if (found != state.identity.end() && found->second != expected.identity.at(key))
      throw Error(Fault::checkpoint,
                  fmt::format("{}: {} is {}, asked for is {}", path, key, found->second, expected.identity.at(key)));
  }
  const std::string file = path + "/model.safetensors";
  const WeightReport report = load_weights(session.store, file, Fault::checkpoint);
  if (!report.complete())
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit the model: {}", file, report.summary()));
}

}  // namespace

bool load_newest_checkpoint(Session& session, Log& log) {
  std::string path;
  if (session.is_chief()) {
    path = newest_checkpoint(session.config.flags.train_dir, log).value_or("");
    if (!path.empty()) load(session, path);
  }
  const int chief = session.config.ranks.chief;
  path = session.group.broadcast(path, chief, "checkpoint");
  if (path.empty()) return false;
  broadcast_replica(session.store, *session.communicator, chief);
  log.line(fmt::format("Successfully loaded model from {}.", path));
  return true;
}

}  // namespace dtrain::cnn_benchmarks
