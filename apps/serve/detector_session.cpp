#include "apps/serve/detector_session.h"

#include <algorithm>
#include <cmath>

#include "apps/detection/placed_image.h"
#include "dtrain/core/error.h"

namespace dtrain::serve {

Pixels DetectorSession::decode(std::span<const std::byte> encoded) const {
  Pixels pixels;
  data::SampleNotes notes;
  pixels.image = detection::decode_image(
      encoded, {.limits = {.max_pixels = max_pixels_}, .orientation = detector_->orientation()}, &notes);
  pixels.damage = notes.damage;
  return pixels;
}

Pixels DetectorSession::from_levels(std::span<const float>) const {
  throw Error(Fault::data, R"(a detector reads encoded images of any size: expected {"b64": "..."})");
}

std::vector<Prediction> DetectorSession::predict(std::span<const Pixels* const> images) const {
  const std::lock_guard lock(mutex_);
  std::vector<Prediction> predictions;
  for (const Pixels* pixels : images) {
    const data::Image& image = pixels->image;
    predictions.push_back({.objects = detector_->objects_in(image), .height = image.height, .width = image.width});
    if (!std::ranges::all_of(predictions.back().objects,
                             [](const auto& object) { return std::isfinite(object.score); }))
      throw Error(Fault::numeric, "the model's output for an image is not finite");
  }
  return predictions;
}

}  // namespace dtrain::serve
