// Replaces libdtrain/cuda/cublas_plan.h: MatmulPlans by oneDNN. Declines a bias in f16 GEMM.
#pragma once

#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

struct MatmulProblem {
  int64_t m, n, k;
  int64_t transpose_a, transpose_b;
  int64_t dtype, output_dtype;
  int64_t bias;
  int64_t alignment;
  int64_t tf32;
};

struct MatmulOperands {
  const void *a, *b;
  void* d;
  const void* bias = nullptr;
};

class MatmulPlans {
 public:
  [[nodiscard]] bool run(Context& context, const MatmulProblem& problem, const MatmulOperands& operands, bool add);
};

}  // namespace dtrain::cuda
