#include "libdtrain/cpu/matmul.h"

#include <algorithm>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/amx_gemm.h"
#include "libdtrain/cpu/gemm/gemm.h"
#include "libdtrain/cpu/gemm/gemm_tn.h"
#include "libdtrain/cpu/gemm/packing.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/onednn/matmul.h"
#include "libdtrain/cpu/onednn/run.h"
#include "libdtrain/cpu/threads/scratch.h"

namespace dtrain::cpu {
namespace {

GemmTnShape tn_shape(const MatmulShape& o) { return {o.k, 1, o.n, o.m, true}; }

// Whether the engine's GEMM computes a product of depth k. In f32 oneDNN's SGEMM does: it is as fast, and more exact
// for long sums, which it blocks.
template <class T>
bool gemm_supports(const Context& context, int64_t k) {
  return std::is_same_v<T, Bf16> && context.kernels().capabilities.bf16 && k > 0 && k % kPackFactor<Bf16> == 0;
}

template <class T>
void multiply(const Context& context, const MatmulShape& o, const T* a, const T* packed, const Epilogue<T>& epilogue,
              T* c) {
  if constexpr (std::is_same_v<T, Bf16>)
    if (context.kernels().capabilities.amx)
      return amx_implicit_gemm(context, {pointwise_shape(o.m, o.k, o.n), a}, {0, o.n, o.n, o.n}, packed, epilogue, c,
                               false);
  gemm<T>(context, strided_matrix(a, o.m, o.k, o.k), packed, epilogue, {.data = c, .n = o.n});
}

}  // namespace

bool matmul_supports(const Context& context, DType dtype, int64_t k) {
  return dtype == DType::f32 || gemm_supports<Bf16>(context, k) || onednn_has_bf16(context);
}

bool matmul_tn_supports(const Context& context, const MatmulShape& o, DType dtype) {
  return dtype == DType::f32 || gemm_tn_pays(context, tn_shape(o), dtype) || onednn_has_bf16(context);
}

template <class T>
void matmul_nt(Context& context, const MatmulShape& o, const T* a, const T* w, const float* bias, T* c) {
  if (!gemm_supports<T>(context, o.k))
    return onednn_matmul(context, {.m = o.m, .n = o.n, .k = o.k, .b_transposed = 1}, a, w, bias, c);
  const Scratch<T> packed(context, packed_elements(context, o.n, o.k));
  pack_transposed(context, o.n, o.k, w, packed.data());
  multiply<T>(context, o, a, packed.data(), {.bias = bias}, c);
}

template <class T>
void matmul_nn(Context& context, const MatmulShape& o, const T* a, const T* b, T* c, bool add) {
  if (!gemm_supports<T>(context, o.k))
    return onednn_matmul(context, {.m = o.m, .n = o.n, .k = o.k, .add = add}, a, b, nullptr, c);
  const Scratch<T> packed(context, packed_elements(context, o.n, o.k));
  pack_rows<T>(
      context, o.n, o.k, [b, n = o.n](int64_t i) { return b + i * n; }, packed.data());
  multiply<T>(context, o, a, packed.data(), {.residual = add ? c : nullptr}, c);
}

template <class T>
void matmul_tn(Context& context, const MatmulShape& o, const T* a, const T* b, float* c, bool add) {
  if (o.k == 0) {
    if (!add) std::fill_n(c, o.m * o.n, 0.0f);
    return;
  }
  if constexpr (std::is_same_v<T, Bf16>)
    if (gemm_tn_pays(context, tn_shape(o), DType::bf16))
      return gemm_tn<T>(context, strided_matrix(b, o.k, o.n, o.n), {a, o.m}, c, add,
                        context.kernels().capabilities.amx);
  onednn_matmul(context, {.m = o.m, .n = o.n, .k = o.k, .a_transposed = 1, .add = add, .c_is_f32 = 1}, a, b, nullptr,
                c);
}

template void matmul_nt(Context&, const MatmulShape&, const float*, const float*, const float*, float*);
template void matmul_nt(Context&, const MatmulShape&, const Bf16*, const Bf16*, const float*, Bf16*);
template void matmul_nn(Context&, const MatmulShape&, const float*, const float*, float*, bool);
template void matmul_nn(Context&, const MatmulShape&, const Bf16*, const Bf16*, Bf16*, bool);
template void matmul_tn(Context&, const MatmulShape&, const float*, const float*, float*, bool);
template void matmul_tn(Context&, const MatmulShape&, const Bf16*, const Bf16*, float*, bool);

}  // namespace dtrain::cpu
