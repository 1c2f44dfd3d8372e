// Anchors: reference boxes at each cell of a feature map.
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
  // How corners of anchors are computed and ordered within a cell.
  enum class Rounding {
    // w = sqrt(size^2 / ratio), h = ratio * w; the ratios within a size (TensorPack since 2019, AWS Mask R-CNN).
    none,
    // h = sqrt(ratio) * size, w = size / sqrt(ratio), each corner rounded, ties to even; the sizes within a ratio
    // (torchvision).
    corners,
    // From a square of `stride` pixels: w = round(sqrt(stride^2 / ratio)), h = round(ratio * w), both times size /
    // stride; centred in the cell regardless of `centre`; sizes within a ratio (original Detectron; early TensorPack).
    // Both strides must be equal.
    detectron
  } rounding = Rounding::none;
  // With Rounding::detectron: corners are inclusive, as in BoxCoder::plus_one (Detectron). Otherwise x2 and y2 are 1
  // larger, so that sizes are x2 - x1 (TensorPack).
  bool plus_one = false;
};

// Anchors [rows * columns * sizes * ratios, 4] of a feature map as x1, y1, x2, y2: cells in row-major order, anchors of
// a cell in the order of `rounding`. Throws Error if a size, ratio or stride is not positive and finite, there are no
// anchors, or the strides of Rounding::detectron differ.
std::vector<float> make_anchors(const AnchorOptions& options, int64_t rows, int64_t columns);
// Anchors per cell.
inline int64_t anchors_per_cell(const AnchorOptions& options) {
  return static_cast<int64_t>(options.sizes.size() * options.ratios.size());
}

}  // namespace dtrain
