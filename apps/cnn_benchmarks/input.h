// Batches of a run: from a data set's records, or one repeated synthetic batch.
#pragma once

#include <memory>
#include <optional>

#include "apps/cnn_benchmarks/training_schedule.h"
#include "apps/detection/detection_task.h"
#include "data/staged_loader.h"
#include "dtrain/data/mixing.h"
#include "dtrain/ops/jpeg_decode.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/batch_feed.h"

namespace dtrain::cnn_benchmarks {

// Training and validation data; null for synthetic data.
struct Datasets {
  std::shared_ptr<data::Dataset> training, validation;
  std::shared_ptr<data::DetectionDataset> objects;  // training data of a detector
  detection::ValidationSplit scored;                // validation data of a detector
  DatasetSizes sizes;
  std::vector<std::string> class_names{};                 // by output of a classifier; empty if the data has no names
  std::function<void(const data::LoaderWork&)> report{};  // trace callback of the training loader's threads
};

// Opens the data that the mode needs: training data unless the run only evaluates, validation data if it evaluates.
// Throws Error(Fault::data) if files are missing.
Datasets open_datasets(const Settings& settings);

data::LoaderOptions loader_options(Context& context, const Settings& settings, bool training);

class Input {
 public:
  // Training batches from sample `cursor` on. A synthetic batch has the model's input, made by `pixels`.
  static Input training(Context& context, const Settings& settings, const Datasets& datasets,
                        const PixelNormalization& pixels, uint64_t cursor);
  // One epoch of validation batches.
  static Input validation(Context& context, const Settings& settings, const Datasets& datasets,
                          const PixelNormalization& pixels);

  // The next batch, or null at the end of an epoch. Its tensors are on the device, and valid for work launched before
  // as many further calls as a training step has micro-steps.
  const data::Batch* next();
  // Seconds that next() has waited for data.
  double wait_seconds() const { return loader_ ? loader_->stats().wait_seconds : 0; }
  // Stage of --progressive_resizing that a batch belongs to.
  std::string stage() const { return stage_ == 0 ? "" : "stage " + std::to_string(stage_); }
  // Counts of records and bad records; none for synthetic data.
  std::optional<data::LoaderStats> stats() const;

 private:
  Input(Context& context, const Settings& settings, data::StagedLoader loader, const data::LoaderOptions& options);
  Input(data::Batch batch, int64_t ranks) : ranks_(ranks), batch_(std::move(batch)) {}

  void decode(const data::Batch& batch, const Tensor& images);

  Context* context_ = nullptr;
  std::unique_ptr<data::StagedLoader> loader_;  // null for synthetic data
  int feeds_batches_ = 1;                       // of a step
  size_t stage_ = 0;                            // source of the feed's batches
  std::unique_ptr<BatchFeed> feed_;
  std::unique_ptr<GpuJpegDecoder> decoder_;  // with --jpeg_decoder=gpu
  std::optional<data::BatchMixer> mixer_;    // with --mixup_alpha or --cutmix_alpha, in training
  int64_t ranks_ = 1;                        // micro-steps, each with the synthetic batch
  data::Batch batch_;
};

}  // namespace dtrain::cnn_benchmarks
