// StagedLoader: a Loader whose data set changes at stated epochs, as with progressive resizing.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"

namespace dtrain::data {

// One stream of samples, read from one data set after another. All have the same records in the same order; what
// differs is what their rows look like.
class StagedLoader {
 public:
  // Opens the data set of a stage, counted from 0.
  using Open = std::function<std::shared_ptr<Dataset>(size_t stage)>;
  // `epochs`: where the stages after the first begin, rising; an epoch is as many samples as the data set has. The
  // batches of a step, `batches_per_step`, are of one stage: that of its first sample. Throws Error as Loader.
  StagedLoader(std::shared_ptr<Dataset> first, const LoaderOptions& options, std::vector<double> epochs = {},
               Open open = {}, int64_t batches_per_step = 1);

  // As Loader. A loader that ends takes what it has decoded ahead with it.
  const Batch* next();
  void decode(int64_t row) { loader_->decode(row); }
  // Of all stages; a bad record counts once in each.
  LoaderStats stats() const;
  // That of the batch from next(), or of the first one.
  size_t stage() const { return stage_; }

 private:
  size_t due() const;
  void open_stage(size_t stage);

  std::shared_ptr<Dataset> first_;
  LoaderOptions options_;
  std::vector<double> epochs_;
  Open open_;
  int64_t batches_per_step_, calls_ = 0;
  double records_;
  size_t stage_ = 0;
  LoaderStats past_;  // of the stages that are over
  std::unique_ptr<Loader> loader_;
};

}  // namespace dtrain::data
