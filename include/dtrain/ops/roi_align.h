// RoIAlign (He et al. 2017): fixed-size features of regions by bilinear sampling of feature maps.
#pragma once

#include <span>
#include <tuple>
#include <vector>

#include "dtrain/autograd/tape.h"

namespace dtrain {

inline constexpr size_t kMostRoiMaps = 8;

struct RoiAlignOptions {
  int height = 7, width = 7;
  // Samples per cell and axis; 0: adaptive per region, ceil(pixels of the map per cell).
  int sampling_ratio = 2;
  // true: half-pixel centres; false: regions are at least one pixel of the map wide and high.
  bool aligned = true;
  std::vector<float> scales{};  // per map: its pixels per image pixel

  std::tuple<> tensors() const { return {}; }  // none
};

// maps [n, h, w, c], one per scale, of one type; rois [r, 4] f32; images [r] i32, image of each region; levels [r] i32,
// its map, may be undefined for a single map -> [r, height, width, c] in the type of the maps. Regions with a negative
// image are padding: zero, without gradient. As torchvision's roi_align: samples more than a pixel outside of the map
// are 0, others are clamped to its edge. The gradient is deterministic. Throws Error for mismatched shapes or types, on
// a CPU also for an image or map out of range; on a GPU such a region is NaN and without gradient.
Var roi_align(Tape& tape, std::span<const Var> maps, const Tensor& rois, const Tensor& images, const Tensor& levels,
              const RoiAlignOptions& options);

struct RoiLevels {
  int lowest = 2, highest = 5;  // first and last map
  float canonical_size = 224;   // size of a region that belongs to ...
  int canonical_level = 4;      // ... this level (Lin et al. 2017, equation 1)
  float epsilon = 1e-6f;        // added to the logarithm
  bool plus_one = false;        // sides are x2 - x1 + 1
};
// FPN level of each region; the first for regions of zero area: floor(canonical_level + log2(sqrt(area) /
// canonical_size) + epsilon), clamped, minus `lowest`: rois [r, 4] -> [r] i32
Tensor roi_levels(Context& context, const Tensor& rois, const RoiLevels& options);

}  // namespace dtrain
