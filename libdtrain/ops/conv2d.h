// 2-D convolution over NHWC images with KRSC filters; x is zero outside the image, c runs within the group of k:
//   y[n,p,q,k] = b[k] + sum over r,s,c of x[n, h, v, c] * w[k,r,s,c]
//   h = p * stride.h + r * dilation.h - padding.top,  v = q * stride.w + s * dilation.w - padding.left
#pragma once

#include <memory>

#include "libdtrain/autograd/tape.h"

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

// Sums per channel of an image's values and of their squares, f32 [c]: the statistics that batch norm starts from.
struct ChannelSums {
  Tensor sum, square;
};
// What a convolution makes of its images while it reads them: where defined, relu(x * scale + shift), of which nothing
// is kept. [c], of x's type. A GPU does so for batch norms between convolutions; see conv_bn_act.
struct OnLoad {
  Tensor scale{}, shift{};
  bool defined() const { return scale.defined(); }
};
struct BatchNormSaved;
// conv2d without bias of x or, where `load` is defined, of what that makes of it; x's slot is then that of the latter.
// It makes the sums of its output too where the device does so in less than `worth` milliseconds more; else they stay
// undefined. `before`: where x, which nobody else reads, is relu(batch_norm()) with statistics of this rank's batch.
Var conv2d_with_sums(Tape& tape, const Var& x, const OnLoad& load, const Var& w, const Conv2dOptions& options,
                     float worth, ChannelSums& sums, const std::shared_ptr<BatchNormSaved>& before = nullptr);

// The output shape of a convolution; throws with the reason where there is none.
Shape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

namespace cpu {
// `bias` may be undefined. Gradients are stored, or added where `add`.
void conv2d(Context&, const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions&, const Tensor& y);
void conv2d_dgrad(Context&, const Tensor& dy, const Tensor& w, const Conv2dOptions&, const Tensor& dx, bool add);
void conv2d_wgrad(Context&, const Tensor& x, const Tensor& dy, const Conv2dOptions&, const Tensor& dw, bool add);
// db[k] = sum of dy over n, p, q
void bias_grad(Context&, const Tensor& dy, const Tensor& db, bool add);
// These make nothing of x as they read it, and no sums.
inline void conv2d_with_sums(Context& context, const Tensor& x, const OnLoad&, const Tensor& w,
                             const Conv2dOptions& options, const Tensor& y, float, ChannelSums&) {
  conv2d(context, x, w, {}, options, y);
}
inline void conv2d_wgrad_on_load(Context& context, const Tensor& x, const OnLoad&, const Tensor& dy,
                                 const Conv2dOptions& options, const Tensor& dw, bool add) {
  conv2d_wgrad(context, x, dy, options, dw, add);
}
inline void conv2d_dgrad_before(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options,
                                BatchNormSaved&, const Tensor& dx) {
  conv2d_dgrad(context, dy, w, options, dx, false);
}
}  // namespace cpu

namespace cuda {
// The same in f32, bf16 and f16, the images, filters and their gradients but dw; bias, dw and db are f32. Where dw has
// fewer channels than x (images whose pixels are padded with zeros), the first ones are written.
decltype(cpu::conv2d) conv2d;
decltype(cpu::conv2d_dgrad) conv2d_dgrad;
decltype(cpu::conv2d_wgrad) conv2d_wgrad;
decltype(cpu::bias_grad) bias_grad;
// conv2d that also makes, as y is written, the sums per channel of y's values and of their squares, f32 [k]. False,
// with nothing done, where the library has no engine for it: it takes f16 only.
bool conv2d_with_statistics(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                            const Tensor& sum, const Tensor& sum_of_squares);
// Milliseconds by which that takes longer than conv2d alone; infinite where it is not supported, 0 where nothing is
// measured. It runs both once per shape; what the tensors hold is not touched.
float statistics_cost(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                      const Tensor& sum, const Tensor& sum_of_squares);
// With `load` the sums are made in any case. Where on_load_supported() says so; f16 only.
decltype(cpu::conv2d_with_sums) conv2d_with_sums;
decltype(cpu::conv2d_wgrad_on_load) conv2d_wgrad_on_load;
void conv2d_on_load(Context&, const Tensor& x, const OnLoad&, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                    const ChannelSums& sums);
// Whether the library has engines for both.
bool on_load_supported(Context&, const Tensor& x, const OnLoad&, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                       const ChannelSums& sums);
// conv2d_dgrad, and what the gradient of the batch norm in front starts from where it is faster to make both at once:
// dx is then 0 where relu was, and `before` tells of it and has the sums.
decltype(cpu::conv2d_dgrad_before) conv2d_dgrad_before;
// That at once; with dx undefined nothing is done. False where the library has no engine for it: it takes f16 only.
bool conv2d_dgrad_with_sums(Context&, const Tensor& dy, const Tensor& w, const Conv2dOptions&, BatchNormSaved& before,
                            const Tensor& dx);
}  // namespace cuda

}  // namespace dtrain
