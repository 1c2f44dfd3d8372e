// MatmulPlans: GEMM by cuBLASLt, with the algorithm that its heuristic picks per problem.
#pragma once

#include <cublasLt.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// d = op(a) op(b), column-major as in cuBLAS: d [m, n], op(a) [m, k], op(b) [k, n], contiguous. 64-bit members only: no
// padding, so that equal problems compare equal byte by byte.
struct MatmulProblem {
  int64_t m, n, k;
  int64_t transpose_a, transpose_b;
  int64_t dtype, output_dtype;  // DType of a and b; DType of d
  int64_t bias;                 // 1: f32 bias[m] is added to each column of d
  int64_t alignment;            // of every address, in bytes; at most 256
  int64_t tf32;

  bool operator==(const MatmulProblem& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
};
static_assert(std::has_unique_object_representations_v<MatmulProblem>);

struct MatmulOperands {
  const void *a, *b;
  void* d;
  const void* bias = nullptr;
};

class MatmulPlans {
 public:
  MatmulPlans();

  // d = op(a) op(b), or d += op(a) op(b) if `add`. Returns false, without work, where cuBLASLt has no algorithm; f32 or
  // 16-bit matrices without bias always have one. Accumulates in f32; results are bitwise reproducible.
  [[nodiscard]] bool run(Context& context, const MatmulProblem& problem, const MatmulOperands& operands, bool add);

 private:
  struct Plan;
  struct Hash {
    size_t operator()(const MatmulProblem& problem) const {
      return std::hash<std::string_view>()({reinterpret_cast<const char*>(&problem), sizeof problem});
    }
  };

  std::shared_ptr<cublasLtContext> handle_;
  std::unordered_map<MatmulProblem, std::shared_ptr<Plan>, Hash> plans_;
};

}  // namespace dtrain::cuda
