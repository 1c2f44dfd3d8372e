// Checkpoints of a train_dir, local or in object storage, that a program evaluates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/cli/log.h"
#include "dtrain/run/load_checkpoint.h"

namespace dtrain {
class CheckpointCopies;
}

namespace dtrain::cli {

// Of s3://, the chief downloads one checkpoint at a time, without a lease, and nothing is written there. All functions
// are collective.
class SavedCheckpoints {
 public:
  // Loads the newest checkpoint in the folder, or the folder itself; nullopt if there is none.
  using Load = std::function<std::optional<LoadedCheckpoint>(const std::string& folder)>;

  // `train_dir`: a folder, or s3://BUCKET/PREFIX.
  SavedCheckpoints(std::string train_dir, Group& group, int chief, Load load);

  // Loads the newest complete one, and logs its path.
  std::optional<LoadedCheckpoint> newest(Log& log);
  // Calls `evaluate` with every n-th, from the oldest, and with the newest, or with the newest alone if `nth` is 0;
  // again and again after `pause_seconds`, unless they are 0. Returns false when `evaluate` does, or after a stop
  // request. Throws Error(Fault::checkpoint) if there is none and `pause_seconds` is 0, or if none of
  // several can be loaded.
  bool evaluate(int64_t nth, int64_t pause_seconds, Log& log,
                const std::function<bool(const LoadedCheckpoint& loaded)>& evaluate);

 private:
  // A folder, or a step of s3://.
  using Place = std::variant<std::string, uint64_t>;
  std::vector<Place> kept(size_t nth);
  std::optional<LoadedCheckpoint> load(const Place& place, Log& log);
  std::optional<LoadedCheckpoint> load_folder(const std::string& folder, Log& log);
  // Loads the copy that the chief makes, if it returns the path of one.
  std::optional<LoadedCheckpoint> load_copy(const std::function<std::optional<std::string>()>& copy, Log& log);
  bool is_remote() const { return train_dir_.starts_with("s3://"); }
  CheckpointCopies& copies();

  const std::string train_dir_;
  Group& group_;
  const int chief_;
  const Load load_;
  std::shared_ptr<CheckpointCopies> copies_;  // on the chief, of s3://
};

}  // namespace dtrain::cli
