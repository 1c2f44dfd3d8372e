// ImageTask: a task on images with accessors for programs.
#pragma once

#include <optional>
#include <vector>

#include "apps/cli/pictures.h"
#include "dtrain/data/loader.h"
#include "dtrain/run/task.h"

namespace dtrain::cli {

class ImageTask : public Task {
 public:
  using Task::Task;
  // Forward pass of the loaded batch in inference mode. Returns its metrics, if any. Waits for the device.
  virtual std::vector<MetricValue> infer() = 0;
  // Images of the first batch of the last step, before normalisation; none for a synthetic batch.
  virtual std::vector<Picture> pictures() const = 0;
  // This rank's counts of training records and of bad records; none for synthetic data or before open().
  virtual std::optional<data::LoaderStats> stats() const = 0;
  // The same of the last completed evaluation, over all ranks; zero if there was none.
  virtual const data::LoaderStats& evaluation_stats() const = 0;
};

}  // namespace dtrain::cli
