// A convolution for inference: its filters are multiplied by the scale of a batch norm and brought into the order of
// the kernels once, and shift, residual and relu are applied as the result is written. T is float, or Bf16 on an
// instruction set that has products of it.
#pragma once

#include <mutex>
#include <vector>

#include "libdtrain/core/tensor.h"
#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/cpu/kernels/product.h"

namespace dtrain::cpu {

// The filters of one convolution, which has one group. Several threads may use them at a time.
template <class T>
class FoldedFilters {
 public:
  // Of w [k, r, s, c], which has to live as long as this, each of the k multiplied by its scale; `scale` empty: 1.
  FoldedFilters(const ConvShape& shape, const T* w, std::vector<float> scale);

  // As gathered_conv takes them.
  const Tensor& panels(Context&);
  const Tensor& winograd(Context&);  // see winograd_filters

 private:
  float value(int64_t k, int64_t tap, int64_t channel) const;

  int64_t k_, taps_, c_;
  const T* w_;
  std::vector<float> scale_;
  std::mutex mutex_;
  Tensor panels_, winograd_;
};

// y = act(x * filters + end.bias + end.residual), of y's shape; `end.bias` [k] is not multiplied by the scale.
template <class T>
void folded_conv(Context&, const ConvShape&, const T* x, FoldedFilters<T>& filters, const EndOf<T>& end, T* y);

}  // namespace dtrain::cpu
