// Session of a detector.
#pragma once

#include <memory>
#include <mutex>

#include "apps/detection/image_detector.h"
#include "apps/serve/session.h"

namespace dtrain::serve {

class DetectorSession final : public Session {
 public:
  // Refuses images with more than `max_pixels`.
  DetectorSession(std::unique_ptr<detection::ImageDetector> detector, int64_t max_pixels, uint64_t version)
      : Session(version, "fp32"), max_pixels_(max_pixels), detector_(std::move(detector)) {}

  bool detects() const override { return true; }
  const std::vector<data::coco::Category>& categories() const override { return detector_->categories(); }
  Pixels decode(std::span<const std::byte> encoded) const override;
  Pixels from_levels(std::span<const float> levels) const override;
  std::vector<Prediction> predict(std::span<const Pixels* const> images) const override;
  size_t max_batch() const override { return 1; }

 private:
  int64_t max_pixels_;
  mutable std::mutex mutex_;  // the detector processes one image at a time
  std::unique_ptr<detection::ImageDetector> detector_;
};

}  // namespace dtrain::serve
