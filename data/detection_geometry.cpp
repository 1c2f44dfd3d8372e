#include "dtrain/data/detection_geometry.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

constexpr int64_t kMaxSide = 65500;

// PyTorch divides by a tensor by multiplying with its reciprocal.
double single_ratio(int64_t to, int64_t from) {
  const float reciprocal = 1 / static_cast<float>(from);
  return static_cast<double>(static_cast<float>(to) * reciprocal);
}

// torchvision's GeneralizedRCNNTransform.
ImageSize resized_as_torchvision(const ImageSize& image, int64_t short_edge, const ResizeRule& rule) {
  const auto [shorter, longer] = std::minmax(image.height, image.width);
  const auto ratio = [&](int64_t to, int64_t from) {
    return rule.rounding == SizeRounding::down_single ? single_ratio(to, from)
                                                      : static_cast<double>(to) / static_cast<double>(from);
  };
  const double scale = std::min(ratio(short_edge, shorter), ratio(rule.max_size, longer));
  const auto side = [scale](int64_t pixels) {
    return static_cast<int64_t>(std::floor(static_cast<double>(pixels) * scale));
  };
  return {side(image.height), side(image.width)};
}

// TensorPack's CustomResize.
ImageSize resized_as_tensorpack(const ImageSize& image, int64_t short_edge, const ResizeRule& rule) {
  auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const auto edge = static_cast<double>(short_edge), most = static_cast<double>(rule.max_size);
  const double scale = edge / std::min(height, width);
  const bool landscape = height < width;
  height = landscape ? edge : scale * height;
  width = landscape ? scale * width : edge;
  if (const double longer = std::max(height, width); longer > most) {
    const double smaller = most / longer;
    height *= smaller;
    width *= smaller;
  }
  return {static_cast<int64_t>(height + 0.5), static_cast<int64_t>(width + 0.5)};
}

}  // namespace

void ResizeRule::check() const {
  DT_CHECK(min_short_edge > 0 && min_short_edge <= max_short_edge && max_short_edge <= max_size && max_size <= kMaxSide,
           "resizing to a short edge of ", min_short_edge, " to ", max_short_edge, " and a long one of at most ",
           max_size, " pixels: expected 1 to ", kMaxSide, " in ascending order");
}

ImageSize resized(const ImageSize& image, int64_t short_edge, const ResizeRule& rule) {
  DT_CHECK(image.height > 0 && image.width > 0, "resizing an image of ", image.width, "x", image.height, " pixels");
  const ImageSize size = rule.rounding == SizeRounding::half_up ? resized_as_tensorpack(image, short_edge, rule)
                                                                : resized_as_torchvision(image, short_edge, rule);
  return {std::max<int64_t>(size.height, 1), std::max<int64_t>(size.width, 1)};
}

std::vector<ImageSize> automatic_canvases(const ResizeRule& rule, int64_t multiple) {
  DT_CHECK(multiple > 0, "canvases in multiples of ", multiple, " pixels");
  const auto up = [multiple](int64_t side) { return (side + multiple - 1) / multiple * multiple; };
  const ImageSize landscape{up(rule.max_short_edge), up(rule.max_size)};
  const ImageSize portrait{landscape.width, landscape.height};
  if (landscape == portrait) return {landscape};
  return {landscape, portrait};
}

size_t canvas_of(const ImageSize& image, const ResizeRule& rule, const std::vector<ImageSize>& canvases) {
  const ImageSize largest = resized(image, rule.max_short_edge, rule);
  size_t best = canvases.size();
  for (size_t i = 0; i < canvases.size(); ++i) {
    const ImageSize& canvas = canvases[i];
    if (canvas.height < largest.height || canvas.width < largest.width) continue;
    if (best == canvases.size() || canvas.height * canvas.width < canvases[best].height * canvases[best].width)
      best = i;
  }
  DT_CHECK(best < canvases.size(), "an image of ", image.width, "x", image.height, " becomes ", largest.width, "x",
           largest.height, " pixels, which no canvas holds");
  return best;
}

std::array<float, 4> Placement::corners(const coco::BoundingBox& box) const {
  const auto [left, right] = std::minmax({x(box.x), x(box.x + box.width)});
  // With FMA contraction the mirrored edge may be slightly below 0.
  return {static_cast<float>(std::max(left, 0.0)), static_cast<float>(y(box.y)), static_cast<float>(right),
          static_cast<float>(y(box.y + box.height))};
}

coco::BoundingBox clipped(const coco::BoundingBox& box, const ImageSize& image) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  const double left = std::clamp(box.x, 0.0, width), top = std::clamp(box.y, 0.0, height);
  return {left, top, std::clamp(box.x + box.width, 0.0, width) - left,
          std::clamp(box.y + box.height, 0.0, height) - top};
}

}  // namespace dtrain::data
