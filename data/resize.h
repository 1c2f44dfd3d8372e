// Resampling of RGB bytes: TensorFlow 1's four methods and torch's bilinear in floats, and PIL's antialiased bilinear
// in its fixed point. Both are separable: a filter per axis, then one pass over the image, row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image.h"
#include "libdtrain/core/encoded_image.h"

namespace dtrain::data {

// One axis of a resize: `in` samples become `out`, of which [begin, begin + count) are wanted. With `flip` the source
// is mirrored first (which differs from mirroring the result: TensorFlow's sampling positions are not symmetric).
struct Axis {
  int in = 0, out = 0;
  int begin = 0, count = 0;
  bool flip = false;
};

enum class ResizeMethod : uint8_t { nearest, bilinear, bicubic, area };

// As tf.compat.v1.image.resize_images(align_corners=False): source = output * in / out, no half-pixel shift, no
// antialiasing; bicubic with a = -0.75 and positions rounded to 1/1024.
void make_filter(const Axis& axis, ResizeMethod method, Filter<float>& filter);

// As PIL.Image.resize(BILINEAR): a triangle as wide as the scale, 22-bit weights.
void make_filter(const Axis& axis, Filter<int32_t>& filter);

// The precision of source coordinates: torch computes them in single precision, OpenCV in double.
enum class Coordinates : uint8_t { f64, f32 };

// As torch's interpolate(mode="bilinear", align_corners=False) and OpenCV's INTER_LINEAR: source = (output + 1/2) * in
// / out - 1/2, no antialiasing. With `flip` the image is resized and then mirrored by f64, and mirrored and then
// resized by f32, as TensorPack's and torchvision's augmentations do.
void make_half_pixel_filter(const Axis& axis, Filter<float>& filter, Coordinates coordinates = Coordinates::f64);

// Puts `before` samples of 0 in front of those that `filter` makes, and as many after them as make `count` in all.
void pad_with_zeros(Filter<float>& filter, int before, int count);

// out [y.count(), x.count(), 3]. `rows` is scratch, kept from call to call. The fixed-point form rounds to 8 bits after
// the horizontal and after the vertical pass, as PIL does, so its result is bit-equal to PIL's.
void resample(const ImageView& source, const Filter<float>& x, const Filter<float>& y, std::vector<float>& rows,
              float* out);
void resample(const ImageView& source, const Filter<int32_t>& x, const Filter<int32_t>& y, std::vector<uint8_t>& rows,
              uint8_t* out);
// The first form with its sums, which must be from 0 to 255, rounded to bytes once, half to even; rows of `out` begin
// `stride` bytes apart.
void resample(const ImageView& source, const Filter<float>& x, const Filter<float>& y, std::vector<float>& rows,
              uint8_t* out, int64_t stride);

}  // namespace dtrain::data
