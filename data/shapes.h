// Synthetic detection scenes: shapes over a textured background, with exact masks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

inline constexpr std::array<const char*, 5> kShapeNames = {"circle", "rectangle", "triangle", "star", "ring"};

struct SceneOptions {
  static constexpr int kMinSide = 32, kMaxSide = 4096;
  static constexpr float kMaxNoise = 128;

  int width = 320, height = 240;
  float noise = 16;  // amplitude of background texture and pixel noise, in levels; 0: uniform colours
  uint64_t seed = 0;
};

struct SceneObject {
  int shape = 0;             // index into kShapeNames
  bool is_crowd = false;     // many small shapes of one kind, annotated together
  coco::Rle mask{};          // visible pixels; masks of a scene are disjoint and non-empty
  coco::Polygons outline{};  // exact polygon, if the shape has no hole and is not occluded
};

struct Scene {
  Image image{};
  std::vector<SceneObject> objects{};  // back to front; may be empty
};

// Deterministic scene for these arguments. At least half of every object is visible. Throws Error for options out of
// range.
Scene draw_scene(const SceneOptions& options, uint64_t index);

}  // namespace dtrain::data
