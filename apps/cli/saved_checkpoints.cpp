#include "apps/cli/saved_checkpoints.h"

#include <chrono>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/agreed_stop.h"
#include "apps/cli/chief_work.h"
#include "apps/cli/messages.h"
#include "dtrain/core/error.h"
#include "libdtrain/train/checkpoint_copies.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::cli {

SavedCheckpoints::SavedCheckpoints(std::string train_dir, Group& group, int chief, Load load)
    : train_dir_(std::move(train_dir)), group_(group), chief_(chief), load_(std::move(load)) {}

std::optional<LoadedCheckpoint> SavedCheckpoints::newest(Log& log) {
  if (!is_remote()) return load_folder(train_dir_, log);
  return load_copy([this] { return copies().newest(); }, log);
}

bool SavedCheckpoints::evaluate(int64_t nth, int64_t pause_seconds, Log& log,
                                const std::function<bool(const LoadedCheckpoint&)>& evaluate) {
  if (nth > 0) {
    bool any = false;
    for (const Place& place : kept(static_cast<size_t>(nth)))
      if (const auto loaded = load(place, log)) {
        any = true;
        if (!evaluate(*loaded)) return false;
      }
    if (!any) throw Error(Fault::checkpoint, fmt::format("{}: every checkpoint was damaged or deleted", train_dir_));
    return true;
  }
  while (true) {
    if (const auto loaded = newest(log)) {
      if (!evaluate(*loaded)) return false;
    } else if (pause_seconds > 0) {
      log.line(fmt::format("Checkpoint not found in {}", train_dir_));
    } else {
      throw Error(Fault::checkpoint, fmt::format("Checkpoint not found in {}", train_dir_));
    }
    if (pause_seconds <= 0) return true;
    if (stopped_within(group_, std::chrono::seconds(pause_seconds))) return false;
  }
}

std::vector<SavedCheckpoints::Place> SavedCheckpoints::kept(size_t nth) {
  std::vector<Place> places;
  if (!is_remote()) {
    for (std::string& path : kept_checkpoints(train_dir_, nth, group_, chief_)) places.emplace_back(std::move(path));
    return places;
  }
  std::string steps;
  const auto list = [&] {
    for (const uint64_t step : every_nth(copies().steps(), nth)) steps += fmt::format("{} ", step);
  };
  do_on_chief(group_, chief_, list, "list of checkpoints");
  std::istringstream read(group_.broadcast(steps, chief_, "checkpoints"));
  for (uint64_t step = 0; read >> step;) places.emplace_back(step);
  if (places.empty()) throw Error(Fault::checkpoint, fmt::format("Checkpoint not found in {}", train_dir_));
  return places;
}

std::optional<LoadedCheckpoint> SavedCheckpoints::load(const Place& place, Log& log) {
  if (const auto* const folder = std::get_if<std::string>(&place)) return load_folder(*folder, log);
  return load_copy([&] { return copies().of(std::get<uint64_t>(place)); }, log);
}

std::optional<LoadedCheckpoint> SavedCheckpoints::load_folder(const std::string& folder, Log& log) {
  auto loaded = load_(folder);
  if (!loaded) return loaded;
  if (copies_) loaded->path = copies_->address(loaded->step);  // only the chief logs
  log.line(fmt::format("Successfully loaded model from {}.", loaded->path));
  return loaded;
}

std::optional<LoadedCheckpoint> SavedCheckpoints::load_copy(const std::function<std::optional<std::string>()>& copy,
                                                            Log& log) {
  std::string path;  // of the chief
  do_on_chief(
      group_, chief_, [&] { path = copy().value_or(""); }, "download of a checkpoint");
  path = group_.broadcast(path, chief_, "copy of a checkpoint");
  return path.empty() ? std::nullopt : load_folder(path, log);
}

CheckpointCopies& SavedCheckpoints::copies() {
  if (!copies_)
    copies_ = std::make_shared<CheckpointCopies>(CheckpointCopiesOptions{
        .url = train_dir_, .parent = folder_for(train_dir_, "checkpoint_copies"), .note = [](const std::string& text) {
          print_message("note", text);
        }});
  return *copies_;
}

}  // namespace dtrain::cli
