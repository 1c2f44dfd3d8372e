// RoIAlign (He et al. 2017): an image of fixed size for each region, averaged from bilinear samples of a feature map.
#pragma once

#include <span>
#include <tuple>
#include <vector>

#include "libdtrain/autograd/tape.h"

namespace dtrain {

inline constexpr size_t kMostRoiMaps = 8;

struct RoiAlignOptions {
  int height = 7, width = 7;
  // Samples per cell and axis; 0: as many as the cell has pixels of the map, rounded up, for each region.
  int sampling_ratio = 2;
  // Pixels are squares around their coordinates, so that half a pixel is subtracted; else regions are at least one
  // pixel of the map wide and high.
  bool aligned = true;
  std::vector<float> scales{};  // of each map: its pixels per pixel of the image

  std::tuple<> tensors() const { return {}; }  // it holds none
};

// maps [n, h, w, c], one per scale, of one type; rois [r, 4] f32; images [r] i32, the image of each region, and levels
// [r] i32, its map; levels may be undefined where there is one map -> [r, height, width, c] in the type of the maps. A
// region with a negative image is padding: zero, without gradient. As torchvision's roi_align: samples beyond the map
// by more than a pixel are 0, those within it are moved to its edge. The gradient is deterministic. Throws Error where
// shapes or types do not fit; on a CPU also where a region's image or map does not exist. On a GPU such a region is NaN
// and without gradient.
Var roi_align(Tape& tape, std::span<const Var> maps, const Tensor& rois, const Tensor& images, const Tensor& levels,
              const RoiAlignOptions& options);

struct RoiLevels {
  int lowest = 2, highest = 5;  // numbers of the first and the last map
  float canonical_size = 224;   // a region of this size ...
  int canonical_level = 4;      // ... has this map (Lin et al. 2017, equation 1)
  float epsilon = 1e-6f;        // added to the logarithm
  bool plus_one = false;        // sides are x2 - x1 + 1
};
// The map of each region, that of a region without area the first:
// floor(canonical_level + log2(sqrt(area) / canonical_size) + epsilon), limited, minus `lowest`: rois [r, 4] -> [r] i32
Tensor roi_levels(Context& context, const Tensor& rois, const RoiLevels& options);

namespace cpu {
void roi_align(Context&, std::span<const Tensor> maps, const Tensor& rois, const Tensor& images, const Tensor& levels,
               const RoiAlignOptions&, const Tensor& y);
// The gradients of all maps, undefined where one is not wanted, stored or, where add[i], added to dmaps[i].
void roi_align_grad(Context&, const Tensor& dy, const Tensor& rois, const Tensor& images, const Tensor& levels,
                    const RoiAlignOptions&, std::span<const Tensor> dmaps, std::span<const uint8_t> add);
void roi_levels(Context&, const Tensor& rois, const RoiLevels&, const Tensor& levels);
}  // namespace cpu

namespace cuda {
decltype(cpu::roi_align) roi_align;
decltype(cpu::roi_align_grad) roi_align_grad;
decltype(cpu::roi_levels) roi_levels;
}  // namespace cuda

}  // namespace dtrain
