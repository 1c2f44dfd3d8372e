#include "apps/detection/detections.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dtrain::detection {
namespace {

using data::coco::Detection;

// In pixels. Without clipping, untrained detectors produce huge boxes, and the results reader has a limit.
constexpr double kFarthest = 1e8;

template <class T>
std::vector<T> on_host(Context& context, const Tensor& tensor) {
  if (!tensor) return {};
  std::vector<T> values(static_cast<size_t>(tensor.count()));
  context.download(tensor, values.data(), "detections");
  return values;
}

// `cells` are empty for a detector without masks.
Detection detection_of(const ImagePlace& image, const float* box, float score, int64_t category,
                       std::span<const float> cells, int side, data::coco::Paste paste) {
  const data::coco::PasteBox at = box_in_file(box, image);
  Detection detection{.image_id = image.id, .category_id = category, .score = score};
  detection.box = {at.x1, at.y1, at.x2 - at.x1, at.y2 - at.y1};
  if (!cells.empty()) detection.mask = data::coco::paste(cells, side, at, image.height, image.width, paste);
  return detection;
}

}  // namespace

data::coco::PasteBox box_in_file(const float* box, const ImagePlace& image) {
  const double x = static_cast<double>(image.width) / image.canvas_width;
  const double y = static_cast<double>(image.height) / image.canvas_height;
  const auto near = [](double at) { return std::clamp(at, -kFarthest, kFarthest); };
  return {near(box[0] * x), near(box[1] * y), near(box[2] * x), near(box[3] * y)};
}

std::vector<std::vector<Detection>> detections_of(Context& context, const models::Detections& found,
                                                  const std::vector<ImagePlace>& images,
                                                  const std::vector<data::coco::Category>& categories,
                                                  data::coco::Paste paste) {
  const auto boxes = on_host<float>(context, found.boxes), scores = on_host<float>(context, found.scores);
  const auto classes = on_host<int32_t>(context, found.classes), counts = on_host<int32_t>(context, found.counts);
  const auto masks = on_host<float>(context, found.masks);
  const size_t places = static_cast<size_t>(found.scores.dim(1));
  const size_t side = found.masks ? static_cast<size_t>(found.masks.dim(1)) : 0, cells = side * side;
  std::vector<std::vector<Detection>> all(images.size());
  size_t mask = 0;
  for (size_t row = 0; row < images.size(); ++row)
    for (int32_t i = 0; i < counts[row]; ++i, ++mask) {
      const size_t place = row * places + static_cast<size_t>(i), category = static_cast<size_t>(classes[place]) - 1;
      if (images[row].id < 0 || category >= categories.size()) continue;
      const std::span own = masks.empty() ? std::span<const float>() : std::span(masks).subspan(mask * cells, cells);
      all[row].push_back(detection_of(images[row], boxes.data() + 4 * place, scores[place], categories[category].id,
                                      own, static_cast<int>(side), paste));
    }
  return all;
}

nlohmann::ordered_json json_of(const data::coco::Detection& one) {
  nlohmann::ordered_json json;
  if (one.box) json["bbox"] = {one.box->x, one.box->y, one.box->width, one.box->height};
  json["score"] = one.score;
  json["category_id"] = one.category_id;
  if (one.mask)
    json["segmentation"] = {{"size", {one.mask->height, one.mask->width}}, {"counts", data::coco::to_text(*one.mask)}};
  return json;
}

nlohmann::ordered_json json_of(const data::coco::Detection& one, const std::vector<data::coco::Category>& categories) {
  nlohmann::ordered_json json = json_of(one);
  const auto category = std::ranges::find(categories, one.category_id, &data::coco::Category::id);
  if (category != categories.end() && !category->id_text.empty()) json["category_id"] = category->id_text;
  return json;
}

}  // namespace dtrain::detection
