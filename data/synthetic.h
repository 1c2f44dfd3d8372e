// Synthetic images: shapes and textures with random colour, position, size and noise; learnable, but not trivial.
#pragma once

#include <cstdint>

#include "dtrain/data/image.h"

namespace dtrain::data {

// Number of shapes and textures. Further classes repeat them in other colours.
inline constexpr int kDrawnKinds = 10;
inline constexpr int kMaxDrawnClasses = 1000;

// "disc", "square", ...; with more than kDrawnKinds classes prefixed by the colour: "colour 3 disc".
std::string drawn_class_name(int drawn_class, int classes);

// Deterministic image of class `drawn_class` of `classes`, `size` x `size` pixels. Throws Error for arguments out of
// range.
Image draw_image(int drawn_class, int classes, int size, uint64_t seed, uint64_t index);

}  // namespace dtrain::data
