// Drawn scenes: shapes of several kinds over textured ground, and exactly which pixels show each of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/coco/annotations.h"
#include "data/image.h"

namespace dtrain::data {

inline constexpr std::array<const char*, 5> kShapeNames = {"circle", "rectangle", "triangle", "star", "ring"};

struct SceneOptions {
  static constexpr int kMinSide = 32, kMaxSide = 4096;
  static constexpr float kMaxNoise = 128;

  int width = 320, height = 240;
  float noise = 16;  // levels, of the ground's texture and of each pixel; 0: every shape and the ground have one colour
  uint64_t seed = 0;
};

struct SceneObject {
  int shape = 0;             // of kShapeNames
  bool is_crowd = false;     // many small shapes, of one kind, that are not told apart
  coco::Rle mask{};          // the pixels that show it: all masks of a scene are disjoint, and none is empty
  coco::Polygons outline{};  // the same as a polygon, where the shape has no hole and nothing hides a part of it
};

struct Scene {
  Image image{};
  std::vector<SceneObject> objects{};  // those in front come later; some scenes have none
};

// A scene that depends on its arguments only. At least half of every object is visible. Throws Error where the options
// are out of range.
Scene draw_scene(const SceneOptions& options, uint64_t index);

}  // namespace dtrain::data
