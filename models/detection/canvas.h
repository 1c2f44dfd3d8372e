// Canvas: what depends on the size of a batch's images alone, made once for each size.
#pragma once

#include <vector>

#include "libdtrain/core/context.h"
#include "models/detection/options.h"

namespace dtrain::models {

struct Canvas {
  int64_t height = 0, width = 0;        // of the images, padding included
  std::vector<Tensor> level_anchors{};  // [1, cells * anchors per cell, 4] of each level
  Tensor anchors{};                     // [cells of all levels * anchors per cell, 4]
};

// `strides`: pixels per cell of each level. A map has as many rows as the image has strides, rounded up. Throws Error
// where the options have neither one size of anchor per level nor a single map.
Canvas make_canvas(Context& context, const RpnOptions& options, const std::vector<int>& strides, int64_t height,
                   int64_t width);

}  // namespace dtrain::models
