// TensorFlow's crop_and_resize of one image: bilinear interpolation between the corners of a box.
#pragma once

#include <vector>

#include "data/image.h"

namespace dtrain::data {

// One axis of a box: `count` samples, evenly spaced, of which the first lies at `from` and the last at `to`. There 0 is
// the centre of the first of `in` source samples, and 1 that of the last. With `flip` they come in reverse.
struct CornerAxis {
  float from = 0, to = 1;
  int in = 0, count = 0;
  bool flip = false;
};

// Sample i lies `fraction[i]` of the way from source sample `low[i]` to the one after it, or on the last one.
struct Interpolation {
  std::vector<int> low;
  std::vector<float> fraction;

  // Source samples that are read: [begin(), end()) of `in`.
  int begin() const;
  int end(int in) const;
  void shift(int offset);  // for a source of which the first `offset` samples are left out
};

// By the formula and the roundings of TensorFlow's kernel, but a sample that roundings put beyond the last source
// sample lies on it: TensorFlow paints the whole row black.
void interpolate_corners(const CornerAxis& axis, Interpolation& samples);

// out [y, x, 3], along x first, each result one rounding of a + (b - a) * fraction, as TensorFlow has it: what is equal
// stays equal.
void interpolate(const ImageView& source, const Interpolation& x, const Interpolation& y, float* out);

}  // namespace dtrain::data
