#include "data/staged_loader.h"

#include <algorithm>
#include <utility>

#include "dtrain/core/error.h"

namespace dtrain::data {

StagedLoader::StagedLoader(std::shared_ptr<Dataset> first, const LoaderOptions& options, std::vector<double> epochs,
                           Open open, int64_t batches_per_step)
    : first_(std::move(first)),
      options_(options),
      epochs_(std::move(epochs)),
      open_(std::move(open)),
      batches_per_step_(batches_per_step) {
  DT_CHECK(first_, "loader: no data set");
  DT_CHECK(
      std::ranges::is_sorted(epochs_) && (epochs_.empty() || open_) && batches_per_step > 0, "loader: ", epochs_.size(),
      " stages whose epochs do not rise or whose data sets nothing opens, or steps of ", batches_per_step, " batches");
  records_ = static_cast<double>(first_->size());
  open_stage(due());
}

size_t StagedLoader::due() const {
  const double epoch = static_cast<double>(options_.cursor) / records_;
  return static_cast<size_t>(std::ranges::upper_bound(epochs_, epoch) - epochs_.begin());
}

void StagedLoader::open_stage(size_t stage) {
  if (loader_) past_ = stats();
  loader_.reset();  // joins its threads before new ones start
  loader_ = std::make_unique<Loader>(stage == 0 ? first_ : open_(stage), options_);
  stage_ = stage;
}

const Batch* StagedLoader::next() {
  if (calls_++ % batches_per_step_ == 0 && due() != stage_) open_stage(due());
  const Batch* batch = loader_->next();
  if (batch) options_.cursor = batch->cursor;
  return batch;
}

LoaderStats StagedLoader::stats() const {
  LoaderStats all = past_;
  all.add(loader_->stats());
  return all;
}

}  // namespace dtrain::data
