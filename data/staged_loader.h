// StagedLoader: a Loader that switches data sets at given epochs, for progressive resizing.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dtrain/data/loader.h"

namespace dtrain::data {

// One stream of samples over consecutive data sets, which have the same records in the same order but different row
// layouts.
class StagedLoader {
 public:
  // Opens the data set of a stage (0-based).
  using Open = std::function<std::shared_ptr<Dataset>(size_t stage)>;
  // `epochs`: start of each stage after the first, ascending; an epoch has as many samples as the data set. All batches
  // of a step (`batches_per_step`) belong to the stage of its first sample. Throws Error as Loader does.
  StagedLoader(std::shared_ptr<Dataset> first, const LoaderOptions& options, std::vector<double> epochs = {},
               Open open = {}, int64_t batches_per_step = 1);

  // See Loader. Ending a stage discards its prefetched batches.
  const Batch* next();
  void decode(int64_t row) { loader_->decode(row); }
  // Over all stages; a bad record counts once per stage.
  LoaderStats stats() const;
  // Stage of the batch from next(), or the first one.
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
  LoaderStats past_;  // of completed stages
  std::unique_ptr<Loader> loader_;
};

}  // namespace dtrain::data
