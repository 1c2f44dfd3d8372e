// Separable resampling of RGB images: TensorFlow 1's four methods, PyTorch's bilinear (float) and PIL's antialiased
// bilinear (fixed point).
#pragma once

#include <cstdint>
#include <vector>

#include "dtrain/core/encoded_image.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

// One axis of a resize from `in` to `out` samples, of which [begin, begin + count) are computed. `flip` mirrors the
// source first; mirroring the result would differ, since TensorFlow's sampling positions are asymmetric.
struct Axis {
  int in = 0, out = 0;
  int begin = 0, count = 0;
  bool flip = false;
};

enum class ResizeMethod : uint8_t { nearest, bilinear, bicubic, area };

// tf.compat.v1.image.resize_images(align_corners=False): source = output * in / out, no half-pixel offset, no
// antialiasing; bicubic with a = -0.75 and positions rounded to 1/1024.
void make_filter(const Axis& axis, ResizeMethod method, Filter<float>& filter);

// PIL.Image.resize(BILINEAR): triangle filter scaled to the reduction factor, 22-bit weights.
void make_filter(const Axis& axis, Filter<int32_t>& filter);

// Precision of source coordinates: single in PyTorch, double in OpenCV.
enum class Coordinates : uint8_t { f64, f32 };

// PyTorch's interpolate(mode="bilinear", align_corners=False) and OpenCV's INTER_LINEAR: source = (output + 1/2) * in /
// out - 1/2, no antialiasing. With `flip`, f64 resizes and then mirrors (TensorPack), f32 mirrors and then resizes
// (torchvision).
void make_half_pixel_filter(const Axis& axis, Filter<float>& filter, Coordinates coordinates = Coordinates::f64);

// Prepends `before` zero samples to the filter's output and appends zeros up to `count` in all.
void pad_with_zeros(Filter<float>& filter, int before, int count);

// out [y.count(), x.count(), 3]. `rows` is a reusable scratch buffer. The fixed-point variant rounds to 8 bits after
// each pass, as PIL does, and is bit-exact with PIL.
void resample(const ImageView& source, const Filter<float>& x, const Filter<float>& y, std::vector<float>& rows,
              float* out);
void resample(const ImageView& source, const Filter<int32_t>& x, const Filter<int32_t>& y, std::vector<uint8_t>& rows,
              uint8_t* out);
// Float variant with output rounded to bytes once, half to even; sums must lie in [0, 255]. Rows of `out` are `stride`
// bytes apart.
void resample(const ImageView& source, const Filter<float>& x, const Filter<float>& y, std::vector<float>& rows,
              uint8_t* out, int64_t stride);

}  // namespace dtrain::data
