// ImageTask: a task on images that programs can also look into.
#pragma once

#include <optional>
#include <vector>

#include "apps/cli/pictures.h"
#include "data/loader.h"
#include "libdtrain/run/task.h"

namespace dtrain::cli {

class ImageTask : public Task {
 public:
  using Task::Task;
  // The forward pass of the batch last loaded, in inference mode: its metrics, if it has any. Waits for the device.
  virtual std::vector<MetricValue> infer() = 0;
  // Images of the first batch of the last step, as they are before they are normalised; none of a synthetic batch.
  virtual std::vector<Picture> pictures() const = 0;
  // This rank's counts of training records and of bad ones; nothing for synthetic data or before open().
  virtual std::optional<data::LoaderStats> stats() const = 0;
  // The same of the last evaluation that was not stopped, over all ranks; all zero where there was none.
  virtual const data::LoaderStats& evaluation_stats() const = 0;
};

}  // namespace dtrain::cli
