// Matrix products by oneDNN, for shapes that the engine's GEMM does not take. For CPU arms only.
#pragma once

#include <cstdint>

#include "dtrain/core/float16.h"
#include "dtrain/core/types.h"

namespace dtrain {
class Context;
}

namespace dtrain::cpu {

// c [m, n] = or += op(a) * op(b) + bias, row-major; a is stored [m, k], or [k, m] where transposed, b [k, n] or [n, k].
// Members are of one type: they are the key of a cached primitive.
struct OnednnMatmul {
  int64_t m, n, k;
  int64_t a_transposed = 0, b_transposed = 0, add = 0;
  int64_t c_is_f32 = 0;  // of bf16 operands
};

// `bias` f32 [n] or null; not together with `add`. Throws Error where oneDNN fails.
void onednn_matmul(Context&, const OnednnMatmul&, const float* a, const float* b, const float* bias, float* c);
void onednn_matmul(Context&, const OnednnMatmul&, const Bf16* a, const Bf16* b, const float* bias, void* c);

}  // namespace dtrain::cpu
