// Drawn images: shapes and textures in random colours, positions, sizes and noise, learnable but not trivial.
#pragma once

#include <cstdint>

#include "data/image.h"

namespace dtrain::data {

// Kinds of drawing. More classes than this repeat the kinds, each time in another colour.
inline constexpr int kDrawnKinds = 10;
inline constexpr int kMaxDrawnClasses = 1000;

// "disc", "square", ...; with more than kDrawnKinds classes the colour is in front: "colour 3 disc".
std::string drawn_class_name(int drawn_class, int classes);

// An image of class `drawn_class` of `classes`, `size` x `size` pixels, that depends on its arguments only. Throws
// Error where they are out of range.
Image draw_image(int drawn_class, int classes, int size, uint64_t seed, uint64_t index);

}  // namespace dtrain::data
