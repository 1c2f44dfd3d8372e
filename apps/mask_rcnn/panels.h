// Pictures side by side, each with a title.
#pragma once

#include <span>
#include <string>

#include "apps/mask_rcnn/canvas.h"

namespace dtrain::mask_rcnn {

struct Panel {
  std::string title{};
  data::Image picture{};
};

// For instance "Ground truth", "Proposals" and "Results" of one image, from left to right on a dark background. Titles
// have the size of labels on the first picture, and are truncated to their picture's width. Throws Error without
// panels.
data::Image side_by_side(std::span<const Panel> panels);

}  // namespace dtrain::mask_rcnn
