// Weights and operands of a convolution for inference: the scale of a batch norm is folded into the weights, which are
// packed once; its shift, a residual and relu are the epilogue. T is float, or Bf16 with Capabilities::bf16.
#pragma once

#include <mutex>
#include <vector>

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/threads/scratch.h"

namespace dtrain::cpu {

// The weights of one convolution of one group, packed at first use for each algorithm. Several threads may use them.
template <class T>
class PackedWeights {
 public:
  // w [k, r, s, c], which outlives this, filter k multiplied by scale[k]; an empty `scale`: by 1.
  PackedWeights(const ConvShape&, const T* w, std::vector<float> scale);

  const Tensor& packed(Context&);    // see pack_weights
  const Tensor& winograd(Context&);  // see winograd_weights

 private:
  template <class To>
  Scratch<To> scaled(const Context&) const;

  ConvShape shape_;
  const T* w_;
  std::vector<float> scale_;
  std::mutex mutex_;
  Tensor packed_, winograd_;
};

// y [n, p, q, k] = epilogue(x * weights); the bias of the epilogue is not scaled.
template <class T>
struct InferenceOperands {
  const T* x;
  PackedWeights<T>* weights;
  Epilogue<T> epilogue;
  T* y;
};

}  // namespace dtrain::cpu
