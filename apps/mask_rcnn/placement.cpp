#include "apps/mask_rcnn/placement.h"

namespace dtrain::mask_rcnn {

detection::Placement evaluation_placement(const data::ImageSize& image, const DataSettings& settings) {
  const data::ResizeRule& rule = settings.evaluation_resize;
  constexpr int64_t kMultiple = 32;
  const auto padded = [](int64_t side) { return (side + kMultiple - 1) / kMultiple * kMultiple; };
  const data::ImageSize size = data::resized(image, rule.max_short_edge, rule);
  return detection::placement_of(image, size, {padded(size.height), padded(size.width)}, rule.rounds_pixels);
}

}  // namespace dtrain::mask_rcnn
