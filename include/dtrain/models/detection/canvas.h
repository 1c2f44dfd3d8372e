// Canvas: anchors of one padded image size, computed once per size.
#pragma once

#include <vector>

#include "dtrain/core/context.h"
#include "dtrain/models/detection/options.h"

namespace dtrain::models {

struct Canvas {
  int64_t height = 0, width = 0;        // including padding
  std::vector<Tensor> level_anchors{};  // [1, cells * anchors per cell, 4] per level
  Tensor anchors{};                     // [cells of all levels * anchors per cell, 4]
};

// `strides`: pixels per cell of each level. Maps have ceil(height / stride) rows. Throws Error unless the options have
// one anchor size per level or use a single map.
Canvas make_canvas(Context& context, const RpnOptions& options, const std::vector<int>& strides, int64_t height,
                   int64_t width);

}  // namespace dtrain::models
