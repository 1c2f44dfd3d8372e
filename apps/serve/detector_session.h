// A Mask R-CNN that is served.
#pragma once

#include <mutex>

#include "apps/mask_rcnn/predictor.h"
#include "apps/serve/session.h"

namespace dtrain::serve {

class DetectorSession final : public Session {
 public:
  // The classes stand for the `known` categories, as mask_rcnn::Predictor has it, which come from the file `source`.
  // Images of more than `max_pixels` are refused. Throws Error(Fault::checkpoint) where the weights do not fit.
  DetectorSession(const mask_rcnn::Settings& settings, const cli::Machine& machine,
                  std::vector<data::coco::Category> known, const std::string& source, int64_t max_pixels,
                  uint64_t version);

  bool detects() const override { return true; }
  const std::string& name() const override { return name_; }
  const std::vector<data::coco::Category>& categories() const override { return predictor_.categories(); }
  Pixels decode(std::span<const std::byte> encoded) const override;
  Pixels from_levels(std::span<const float> levels) const override;
  std::vector<Prediction> predict(std::span<const Pixels* const> images) const override;

 private:
  Prediction predict_one(const data::Image& image) const;

  const std::string name_ = "mask_rcnn";
  int64_t max_pixels_;
  mutable std::mutex mutex_;  // the predictor is shown one image at a time
  mutable mask_rcnn::Predictor predictor_;
};

}  // namespace dtrain::serve
