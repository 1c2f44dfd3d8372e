// Batches of a detection data set on the device, by canvas shape.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/detection/detections.h"
#include "dtrain/data/detection.h"
#include "dtrain/data/loader.h"
#include "dtrain/models/detection/truth.h"
#include "dtrain/train/batch_feed.h"

namespace dtrain::detection {

// Device buffers of a batch.
struct DeviceBatch {
  std::string canvas{};          // name of its layout
  std::vector<Tensor> fields{};  // as data::DetectionFields
  std::vector<uint64_t> samples{};
  uint64_t cursor = 0;

  const Tensor& images() const { return fields[data::DetectionFields::images]; }
  const Tensor& sizes() const { return fields[data::DetectionFields::sizes]; }
  models::DetectionTruth truth() const;
};

class Input {
 public:
  // `micro_steps`: batches per step.
  Input(Context& context, std::shared_ptr<data::DetectionDataset> dataset, const data::LoaderOptions& options,
        int micro_steps);
  // The next batch, or none at the end of an evaluation. Validity as in BatchFeed::put.
  std::optional<DeviceBatch> next();
  // Images of the last batch of next().
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
