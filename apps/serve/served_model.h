// The served model: from a file, or from the newest checkpoint in a train_dir, with hot reload.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "apps/cli/loaded_classifier.h"
#include "apps/detection/image_detector.h"
#include "apps/serve/session.h"

namespace dtrain::serve {

struct ServedModelOptions {
  cli::ClassifierFlags flags;  // with `weights`, unless there is a train_dir
  // Mask R-CNN: preset, if not recorded, and file of keys. Any detector: COCO annotations with the categories of its
  // classes.
  std::string preset = "torchvision", config_file, annotations;
  std::string train_dir;
  cli::Machine machine;
  int64_t max_pixels = 0;
  double poll_seconds = 2;
};

class ServedModel {
 public:
  // Loads the weights, if available. `set` must outlive this. The polling thread calls `changed` after each successful
  // or failed reload. Throws Error if a file's weights do not fit, or flags conflict with the existing checkpoint.
  ServedModel(ServedModelOptions options, const cli::FlagSet& set, std::function<void(const Session*)> changed);
  ~ServedModel();
  ServedModel(const ServedModel&) = delete;

  // Null until there is a checkpoint. The shared pointer keeps a session alive across reloads.
  std::shared_ptr<const Session> session() const;

 private:
  // Null unless the weights' record or --model names a detector.
  std::unique_ptr<detection::ImageDetector> detector_with(const std::string& weights) const;
  std::shared_ptr<Session> session_of(const std::string& weights, uint64_t version) const;
  void look(bool starting);
  void watch();

  const ServedModelOptions options_;
  const cli::FlagSet& set_;
  const std::function<void(const Session*)> changed_;
  std::string path_, failed_;  // served checkpoint; last failed checkpoint, or error without one
  mutable std::mutex mutex_;
  std::shared_ptr<const Session> session_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace dtrain::serve
