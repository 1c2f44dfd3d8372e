// Anchors: the reference boxes of a feature map's cells.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain {

struct AnchorOptions {
  std::vector<float> sizes{};        // square roots of the areas, in pixels
  std::vector<float> ratios{};       // height / width
  float stride_h = 1, stride_w = 1;  // pixels of the image per cell
  enum class Centre {
    origin,  // of cell (i, j): (j * stride, i * stride)
    middle,  // of cell (i, j): ((j + 1/2) * stride, (i + 1/2) * stride)
  } centre = Centre::origin;
  // How far the corners of an anchor around 0 are whole numbers.
  enum class Rounding {
    none,      // TensorPack and AWS Mask R-CNN: w = sqrt(size^2 / ratio), h = ratio * w
    corners,   // torchvision: h = sqrt(ratio) * size, w = size / sqrt(ratio), each corner rounded, ties to even
    detectron  // Detectron's first version: sizes counted with + 1 and rounded, around ((stride - 1) / 2)
  } rounding = Rounding::none;
};

// The anchors [rows * columns * sizes * ratios, 4] of a map: cells row by row, in each the ratios within a size (the
// order of torchvision and TensorPack where there is one size) ... x1, y1, x2, y2. Throws Error where a size, ratio or
// stride is not positive and finite, or there are none.
std::vector<float> make_anchors(const AnchorOptions& options, int64_t rows, int64_t columns);
// Anchors of a cell.
inline int64_t anchors_per_cell(const AnchorOptions& options) {
  return static_cast<int64_t>(options.sizes.size() * options.ratios.size());
}

}  // namespace dtrain
