// Random colour augmentation as in tf.image. In place on [count, 3] floats in [0, 1], without clipping.
#pragma once

#include <cstdint>

namespace dtrain::data {

void add_brightness(float* rgb, int64_t count, float delta);
// (value - mean of its channel) * factor + mean
void scale_contrast(float* rgb, int64_t count, float factor);
// HSV: multiplies the saturation and clips it to [0, 1]; shifts the hue by delta turns.
void scale_saturation(float* rgb, int64_t count, float factor);
void rotate_hue(float* rgb, int64_t count, float delta);
// Hue and saturation by a rotation in YIQ space; angle in radians (tf.contrib.image.adjust_hsv_in_yiq, value scale 1).
void turn_in_yiq(float* rgb, int64_t count, float angle, float saturation);

}  // namespace dtrain::data
