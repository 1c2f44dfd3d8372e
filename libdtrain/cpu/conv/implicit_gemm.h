// Convolution as implicit GEMM with the engine's own micro-kernels: the im2col matrix by an indirection buffer, or
// repacked for tile registers, times packed weights. One group; bf16 needs Capabilities::bf16.
#pragma once

#include "libdtrain/cpu/conv/algorithm.h"
#include "libdtrain/cpu/conv/inference.h"
#include "libdtrain/cpu/gemm/gemm_tn.h"

namespace dtrain::cpu {

// kAmx: by tile registers, T being Bf16.
template <class T, bool kAmx = false>
struct ImplicitGemm {
  static Verdict forward_verdict(const Context&, const ConvShape&);
  static Verdict dgrad_verdict(const Context&, const ConvShape&);
  static Verdict wgrad_verdict(const Context&, const ConvShape&);
  static void forward(Context&, const ConvShape&, const ConvOperands<T>&);
  // For each phase of the strides an implicit GEMM over dy.
  static void dgrad(Context&, const ConvShape&, const ConvOperands<T>&);
  static void wgrad(Context&, const ConvShape&, const ConvOperands<T>&);
  static void inference(Context&, const ConvShape&, const InferenceOperands<T>&);
};

// Weights w [k, r, s, c] as panels, each pixel's channels rounded up to pairs for bf16.
template <class T>
Tensor pack_weights(Context&, const ConvShape&, const T* w);

// The GEMM of the weight gradient.
GemmTnShape wgrad_shape(const ConvShape&);

}  // namespace dtrain::cpu
