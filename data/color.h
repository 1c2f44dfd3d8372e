// Random colour changes of one image, as tf.image has them. In place on [count, 3] floats in [0, 1]; nothing is
// clipped.
#pragma once

#include <cstdint>

namespace dtrain::data {

void add_brightness(float* rgb, int64_t count, float delta);
// (value - mean of its channel) * factor + mean
void scale_contrast(float* rgb, int64_t count, float factor);
// In HSV: the saturation is multiplied and clipped to [0, 1]; the hue moves by delta turns.
void scale_saturation(float* rgb, int64_t count, float factor);
void rotate_hue(float* rgb, int64_t count, float delta);
// Both at once as a rotation in YIQ space; the angle in radians (tf.contrib.image.adjust_hsv_in_yiq, value scale 1).
void turn_in_yiq(float* rgb, int64_t count, float angle, float saturation);

}  // namespace dtrain::data
