// TensorFlow's crop_and_resize of one image: bilinear, aligned to the corners of a box.
#pragma once

#include <vector>

#include "dtrain/data/image.h"

namespace dtrain::data {

// One axis of a box: `count` evenly spaced samples from `from` to `to`, in source coordinates from 0 (centre of the
// first of `in` samples) to 1 (centre of the last). `flip` reverses them.
struct CornerAxis {
  float from = 0, to = 1;
  int in = 0, count = 0;
  bool flip = false;
};

// Output sample i interpolates between source samples `low[i]` and `low[i]` + 1 with weight `fraction[i]`, or is the
// last one.
struct Interpolation {
  std::vector<int> low;
  std::vector<float> fraction;

  // Range of source samples read: [begin(), end()) of `in`.
  int begin() const;
  int end(int in) const;
  void shift(int offset);  // for a source without its first `offset` samples
};

// Formula and rounding of TensorFlow's kernel, except that a sample rounded beyond the last source sample is clamped to
// it; TensorFlow makes the whole row black.
void interpolate_corners(const CornerAxis& axis, Interpolation& samples);

// out [y, x, 3], along x first. Each step is one rounding of a + (b - a) * fraction as in TensorFlow, so that constant
// areas stay constant.
void interpolate(const ImageView& source, const Interpolation& x, const Interpolation& y, float* out);

}  // namespace dtrain::data
