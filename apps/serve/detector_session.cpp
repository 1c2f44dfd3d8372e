#include "apps/serve/detector_session.h"

#include <algorithm>
#include <cmath>

#include "libdtrain/core/error.h"

namespace dtrain::serve {

DetectorSession::DetectorSession(const mask_rcnn::Settings& settings, const cli::Machine& machine,
                                 std::vector<data::coco::Category> known, const std::string& source, int64_t max_pixels,
                                 uint64_t version)
    : Session(version), max_pixels_(max_pixels), predictor_(settings, machine, std::move(known), source) {}

Pixels DetectorSession::decode(std::span<const std::byte> encoded) const {
  return {.image = mask_rcnn::decode_image(encoded, {.max_pixels = max_pixels_})};
}

Pixels DetectorSession::from_levels(std::span<const float>) const {
  throw Error(Fault::data, R"(a detector reads encoded images of any size: expected {"b64": "..."})");
}

Prediction DetectorSession::predict_one(const data::Image& image) const {
  const mask_rcnn::PlacedImage placed = predictor_.place(image);
  Prediction prediction{.height = placed.place.height, .width = placed.place.width};
  prediction.objects = predictor_.in_file(predictor_.detect(placed), placed.place);
  if (!std::ranges::all_of(prediction.objects, [](const auto& object) { return std::isfinite(object.score); }))
    throw Error(Fault::numeric, "the model makes numbers of an image that are not finite");
  return prediction;
}

std::vector<Prediction> DetectorSession::predict(std::span<const Pixels* const> images) const {
  const std::lock_guard lock(mutex_);
  std::vector<Prediction> predictions;
  for (const Pixels* pixels : images) predictions.push_back(predict_one(pixels->image));
  return predictions;
}

}  // namespace dtrain::serve
