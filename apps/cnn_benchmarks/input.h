// Where the batches of a run come from: the records of a data set, or one synthetic batch for ever.
#pragma once

#include <memory>
#include <optional>

#include "apps/cnn_benchmarks/plan.h"
#include "apps/detection/detection_task.h"
#include "data/mixing.h"
#include "data/staged_loader.h"
#include "libdtrain/ops/jpeg_decode.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/train/batch_feed.h"

namespace dtrain::cnn_benchmarks {

// The two halves of the data; null for synthetic data.
struct Datasets {
  std::shared_ptr<data::Dataset> training, validation;
  std::shared_ptr<data::DetectionDataset> objects;  // the training half of a detector's data
  detection::ValidationSplit scored;                // and the validation half
  DatasetSizes sizes;
  std::vector<std::string> class_names{};                 // by output of a classifier; empty where the data names none
  std::function<void(const data::LoaderWork&)> report{};  // given what the threads of the training half do
};

// Opens what the mode needs: the training half of a run that does not only evaluate, the validation half of one that
// evaluates. Throws Error(Fault::data) where there are no such files.
Datasets open_datasets(const Config& config);

data::LoaderOptions loader_options(Context& context, const Config& config, bool training);

class Input {
 public:
  // Training batches from sample `cursor` of the stream on. A synthetic batch is made of what the model reads: by
  // `pixels`.
  static Input training(Context& context, const Config& config, const Datasets& datasets,
                        const PixelNormalization& pixels, uint64_t cursor);
  // One pass over the validation half.
  static Input validation(Context& context, const Config& config, const Datasets& datasets,
                          const PixelNormalization& pixels);

  // The next batch, or null at the end of a pass. Its tensors are on the device, and valid for what is queued there
  // before as many further calls as a training step has batches, its micro-steps.
  const data::Batch* next();
  // Time that next() has waited for data, in seconds.
  double wait_seconds() const { return loader_ ? loader_->stats().wait_seconds : 0; }
  // Tells apart the batches of the stages of --progressive_resizing.
  std::string stage() const { return stage_ == 0 ? "" : "stage " + std::to_string(stage_); }
  // Counts of records and of bad ones; nothing for synthetic data.
  std::optional<data::LoaderStats> stats() const;

 private:
  Input(Context& context, const Config& config, data::StagedLoader loader, const data::LoaderOptions& options);
  Input(data::Batch batch, int64_t ranks) : ranks_(ranks), batch_(std::move(batch)) {}

  void decode(const data::Batch& batch, const Tensor& images);

  Context* context_ = nullptr;
  std::unique_ptr<data::StagedLoader> loader_;  // none for synthetic data
  int feeds_batches_ = 1;                       // of a step
  size_t stage_ = 0;                            // whose batches the feed takes
  std::unique_ptr<BatchFeed> feed_;
  std::unique_ptr<GpuJpegDecoder> decoder_;  // with --jpeg_decoder=gpu
  std::optional<data::BatchMixer> mixer_;    // with --mixup_alpha or --cutmix_alpha, in training
  int64_t ranks_ = 1;                        // that each take such a synthetic batch
  data::Batch batch_;
};

}  // namespace dtrain::cnn_benchmarks
