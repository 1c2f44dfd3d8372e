// The model that is served: that of a file, or of the newest checkpoint of a train_dir, taken up as it appears.
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
  cli::ClassifierFlags flags;  // with `weights`, or without them where there is a train_dir
  // Of a Mask R-CNN that no checkpoint has recorded; of any: a file of keys. Of any detector: a file of COCO's
  // annotations, whose categories its classes stand for.
  std::string preset = "torchvision", config_file, annotations;
  std::string train_dir;
  cli::Machine machine;
  int64_t max_pixels = 0;
  double poll_seconds = 2;
};

class ServedModel {
 public:
  // Loads what there is. `set` must outlive this; `changed` is told whether a session was taken up or could not be, by
  // the thread that watches. Throws Error where the weights of a file do not fit, and where flags do not go with the
  // checkpoint that there is.
  ServedModel(ServedModelOptions options, const cli::FlagSet& set, std::function<void(const Session*)> changed);
  ~ServedModel();
  ServedModel(const ServedModel&) = delete;

  // Null as long as there is no checkpoint. Who holds it keeps it alive while a newer one is taken up.
  std::shared_ptr<const Session> session() const;

 private:
  // Null where neither the checkpoint of these weights nor --model says that they are of a detector.
  std::unique_ptr<detection::ImageDetector> detector_with(const std::string& weights) const;
  std::shared_ptr<Session> session_of(const std::string& weights, uint64_t version) const;
  void look(bool starting);
  void watch();

  const ServedModelOptions options_;
  const cli::FlagSet& set_;
  const std::function<void(const Session*)> changed_;
  std::string path_, failed_;  // the checkpoint that is served, and the last one that could not be
  mutable std::mutex mutex_;
  std::shared_ptr<const Session> session_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace dtrain::serve
