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
  // How the corners of a cell's anchors come about, and in which order they are.
  enum class Rounding {
    // w = sqrt(size^2 / ratio), h = ratio * w; the ratios within a size (TensorPack since 2019, AWS Mask R-CNN).
    none,
    // h = sqrt(ratio) * size, w = size / sqrt(ratio), each corner rounded, ties to even; the sizes within a ratio
    // (torchvision).
    corners,
    // Of the square of `stride` pixels, w = round(sqrt(stride^2 / ratio)), h = round(ratio * w), both times size /
    // stride; around the middle of the cell, whatever `centre` says; the sizes within a ratio (Detectron's first
    // version; TensorPack before). Both strides are the same.
    detectron
  } rounding = Rounding::none;
  // With Rounding::detectron: corners belong to the box, as BoxCoder::plus_one has it (Detectron). Without it x2 and y2
  // are 1 larger, so that sizes are x2 - x1 (TensorPack).
  bool plus_one = false;
};

// The anchors [rows * columns * sizes * ratios, 4] of a map, x1, y1, x2, y2: cells row by row, in each the anchors in
// the order of `rounding`. Throws Error where a size, ratio or stride is not positive and finite, there are none, or
// the strides of Rounding::detectron differ.
std::vector<float> make_anchors(const AnchorOptions& options, int64_t rows, int64_t columns);
// Anchors of a cell.
inline int64_t anchors_per_cell(const AnchorOptions& options) {
  return static_cast<int64_t>(options.sizes.size() * options.ratios.size());
}

}  // namespace dtrain
