// Several pictures beside each other, each below its title.
#pragma once

#include <span>
#include <string>

#include "apps/mask_rcnn/canvas.h"

namespace dtrain::mask_rcnn {

struct Panel {
  std::string title{};
  data::Image picture{};
};

// "Ground truth", "Proposals" and "Results" of one image, for instance, from left to right on a dark ground. Titles are
// as large as labels on the first picture, and cut to the width of their own. Throws Error where there is no panel.
data::Image side_by_side(std::span<const Panel> panels);

}  // namespace dtrain::mask_rcnn
