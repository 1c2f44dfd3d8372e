// Where the batches of a run come from: the records of a data set, or one synthetic batch for ever.
#pragma once

#include <memory>
#include <optional>

#include "apps/cnn_benchmarks/plan.h"
#include "data/loader.h"

namespace dtrain::cnn_benchmarks {

// The two halves of the data; null for synthetic data.
struct Datasets {
  std::shared_ptr<data::Dataset> training, validation;
  DatasetSizes sizes;
};

// Opens what the mode needs: the training half of a run that does not only evaluate, the validation half of one that
// evaluates. Throws Error(Fault::data) where there are no such files.
Datasets open_datasets(const Config& config);

class Input {
 public:
  // Training batches from sample `cursor` of the stream on.
  static Input training(Context& context, const Config& config, const Datasets& datasets, uint64_t cursor);
  // One pass over the validation half.
  static Input validation(Context& context, const Config& config, const Datasets& datasets);

  // The next batch, valid until the next call, or null at the end of a pass.
  const data::Batch* next();
  // Time that next() has waited for data, in seconds.
  double wait_seconds() const { return loader_ ? loader_->stats().wait_seconds : 0; }
  // Counts of records and of bad ones; nothing for synthetic data.
  std::optional<data::LoaderStats> stats() const;

 private:
  explicit Input(std::unique_ptr<data::Loader> loader) : loader_(std::move(loader)) {}
  explicit Input(data::Batch batch) : synthetic_(std::move(batch)) {}

  std::unique_ptr<data::Loader> loader_;
  data::Batch synthetic_;
};

}  // namespace dtrain::cnn_benchmarks
