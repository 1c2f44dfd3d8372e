// Element-wise loops and reductions of batch norm and group norm, over rows of c channels, `stride` elements apart.
// Elements are of T, float or Bf16; statistics, parameters and all arithmetic are float. All instruction sets sum a
// channel in the order of its rows.
#pragma once

#include <cstdint>

#include "dtrain/core/activation.h"
#include "libdtrain/cpu/kernels/by_type.h"

namespace dtrain::cpu {

// y = act((x - mean) * scale + beta + residual); mean, scale and beta [c], the others [rows, c].
template <class T>
struct NormalizedRows {
  const T *x, *residual;  // residual may be null
  T* y;
  const float *mean, *scale, *beta;
  int64_t rows, c, stride;
  Activation act = Activation::none;
  // Non-temporal stores, for a y that is too large to stay in a cache. Its rows are aligned to 64 bytes.
  bool non_temporal = false;
};

// The mask of the activation's gradient comes from y, or from y recomputed from x; of relu, or of relu6. none:
// identity.
enum class ReluGate : uint8_t { none, y, x, y6, x6 };

// The operands of the gradient; x and y may be null where neither the gate nor the loop reads them.
template <class T>
struct GradientRows {
  const T *dy, *x, *y;
  const float *mean, *scale, *beta;  // those that the gate and the loop read
  int64_t rows, c, stride;
  ReluGate gate = ReluGate::none;
};

// How a gradient is stored; non_temporal as in NormalizedRows.
enum class StoreMode : uint8_t { store, add, non_temporal };

template <class T>
struct BatchNormLoops {
  // sum[c] of x - shift, and square[c] of its square.
  void (*moments)(const T* x, int64_t rows, int64_t c, int64_t stride, const float* shift, float* sum, float* square);
  void (*apply)(const NormalizedRows<T>&);
  // With dz the gradient at the activation's input: sum[c] of dz and product[c] of dz * (x - mean), and dz itself into
  // `kept` [rows, c], which may be null and may be dy.
  void (*sums)(const GradientRows<T>&, float* sum, float* product, T* kept);
  // dz alone, which may be dy.
  void (*gate)(const GradientRows<T>&, T* dz);
  // dx = or += scale * dz - (offset + (x - mean) * slope), or scale * dz where offset is null. dx may be dy, unless
  // stores are non-temporal.
  void (*dx)(const GradientRows<T>&, const float* offset, const float* slope, StoreMode, T* dx);
};

using BatchNormKernels = ByType<BatchNormLoops>;

}  // namespace dtrain::cpu
