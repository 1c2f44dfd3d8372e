// Matrix products of linear layers, in f32 and bf16, row-major: one GEMM interface for ops that have no images. T is
// float or Bf16. See matmul_supports for bf16.
#pragma once

#include <cstdint>

#include "dtrain/core/types.h"

namespace dtrain {
class Context;
}

namespace dtrain::cpu {

// Dimensions of a product [m, k] * [k, n]; m and n are not 0.
struct MatmulShape {
  int64_t m, n, k;
};

// Whether products of this type and depth k can be computed; f32 always can.
bool matmul_supports(const Context&, DType, int64_t k);

// c [m, n] = a [m, k] * w^T + bias for w [n, k]; `bias` [n] or null.
template <class T>
void matmul_nt(Context&, const MatmulShape&, const T* a, const T* w, const float* bias, T* c);
// c [m, n] = or += a [m, k] * b [k, n].
template <class T>
void matmul_nn(Context&, const MatmulShape&, const T* a, const T* b, T* c, bool add);
bool matmul_tn_supports(const Context&, const MatmulShape&, DType);
// c [m, n] = or += a^T * b for a [k, m] and b [k, n]; c is f32.
template <class T>
void matmul_tn(Context&, const MatmulShape&, const T* a, const T* b, float* c, bool add);

}  // namespace dtrain::cpu
