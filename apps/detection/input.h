// Batches of a detection data set on the device, in the shapes that their canvases have.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/detection/found.h"
#include "data/detection.h"
#include "data/loader.h"
#include "libdtrain/train/batch_feed.h"
#include "models/detection/truth.h"

namespace dtrain::detection {

// Where a batch lies for the step that reads it.
struct DeviceBatch {
  std::string canvas{};          // its layout's name
  std::vector<Tensor> fields{};  // as data::DetectionFields
  std::vector<uint64_t> samples{};
  uint64_t cursor = 0;

  const Tensor& images() const { return fields[data::DetectionFields::images]; }
  const Tensor& sizes() const { return fields[data::DetectionFields::sizes]; }
  models::DetectionTruth truth() const;
};

class Input {
 public:
  // `micro_steps`: batches of a step.
  Input(Context& context, std::shared_ptr<data::DetectionDataset> dataset, const data::LoaderOptions& options,
        int micro_steps);
  // The next batch, or nothing at the end of an evaluation. What it refers to is valid as BatchFeed::put says.
  std::optional<DeviceBatch> next();
  // The images of the batch that next() returned last.
  const std::vector<ImagePlace>& places() const { return places_; }
  data::LoaderStats stats() const { return loader_.stats(); }

 private:
  Context& context_;
  data::Loader loader_;
  int micro_steps_;
  std::map<std::string, std::unique_ptr<BatchFeed>> feeds_;  // by canvas
  BatchFeed* last_ = nullptr;
  std::vector<ImagePlace> places_;
};

}  // namespace dtrain::detection
