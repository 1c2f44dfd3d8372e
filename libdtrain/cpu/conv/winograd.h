// Winograd's minimal filtering algorithm F(4x4, 3x3) (Lavin and Gray 2016) for 3x3, stride-1 convolutions over NHWC
// images: 36 multiplications where the direct sum takes 144. Relative error against the direct sum about 1e-6 to 1e-5
// in fp32. Arithmetic is in fp32 for bf16, too.
#pragma once

#include "libdtrain/cpu/conv/algorithm.h"
#include "libdtrain/cpu/conv/inference.h"

namespace dtrain::cpu {

// Takes 3x3 kernels of stride 1 without dilation, one group, and channels and filters that fill panels. Applies, faster
// than implicit GEMM, with enough channels to pay for the transforms of images, at least `min_tiles` tiles to pay for
// the transform of the weights, and tiles that do not mostly lie outside the image.
Verdict winograd_verdict(const Context&, const ConvShape&, int64_t min_tiles);

template <class T>
struct Winograd {
  static void forward(Context&, const ConvShape&, const ConvOperands<T>&);
  static void dgrad(Context&, const ConvShape&, const ConvOperands<T>&);
  static void wgrad(Context&, const ConvShape&, const ConvOperands<T>&);
  static void inference(Context&, const ConvShape&, const InferenceOperands<T>&);
};

// The transformed weights w [k, 3, 3, c] of the forward pass, for images of any size.
Tensor winograd_weights(Context&, int64_t c, int64_t k, const float* w);

}  // namespace dtrain::cpu
