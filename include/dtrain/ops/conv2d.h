// 2-D convolution over NHWC images with KRSC filters; x is zero outside the image, c runs within the group of k:
//   y[n,p,q,k] = b[k] + sum over r,s,c of x[n, h, v, c] * w[k,r,s,c]
//   h = p * stride.h + r * dilation.h - padding.top,  v = q * stride.w + s * dilation.w - padding.left
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// A pair of vertical and horizontal extents; one number stands for both.
struct Size2 {
  int h = 1, w = 1;
  Size2(int both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor): `.stride = 2` is how it is written
  Size2(int height, int width) : h(height), w(width) {}
};

// Rows and columns added on each side.
struct Padding {
  int top = 0, bottom = 0, left = 0, right = 0;
  Padding() = default;
  Padding(int all) : top(all), bottom(all), left(all), right(all) {}  // NOLINT(google-explicit-constructor)
  Padding(int t, int b, int l, int r) : top(t), bottom(b), left(l), right(r) {}
  // TensorFlow's SAME: out = ceil(in / stride), the odd row or column at the bottom or right.
  static Padding same(int64_t h, int64_t w, Size2 kernel, Size2 stride);
};

struct Conv2dOptions {
  Size2 stride = 1;
  Padding padding = 0;
  Size2 dilation = 1;
  int groups = 1;
};

// [n, h, w, c] * [k, r, s, c / groups] -> [n, p, q, k], all of one type. `bias` may be null, else [k], f32. Throws
// where shapes or types do not fit.
Var conv2d(Tape& tape, const Var& x, const Var& w, const Var* bias, const Conv2dOptions& options = {});
inline Var conv2d(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& options = {}) {
  return conv2d(tape, x, w, nullptr, options);
}

// The output shape of a convolution; throws with the reason where there is none.
Shape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

// Floating-point operations of a convolution with weights `w` and result `y`: two for each product.
inline double conv2d_flops(const Shape& y, const Shape& w) {
  return 2 * static_cast<double>(y.count()) * static_cast<double>(w.count() / w[0]);
}

// The shape of the result of conv2d, and an uninitialised tensor for it, after checks of the arguments: for fused ops.
Shape conv2d_output_shape(const Var& x, const Var& w, const Conv2dOptions& options);
Tensor conv2d_output(Context& context, const Var& x, const Var& w, const Conv2dOptions& options);

}  // namespace dtrain
