// MatmulPlans: matrix products by cuBLASLt, with the algorithm that its heuristic chose for each.
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

// d = op(a) op(b), column-major as cuBLAS has it: d [m, n], op(a) [m, k], op(b) [k, n], each without gaps. Members of
// 64 bits only, so that there is no padding and equal problems have equal bytes.
struct MatmulProblem {
  int64_t m, n, k;
  int64_t transpose_a, transpose_b;
  int64_t dtype, output_dtype;  // the DType of a and b, and that of d
  int64_t bias;                 // 1: f32 bias[m] is added to each column of d
  int64_t alignment;            // bytes that every address is a multiple of, 256 at most
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

  // d = the product, or += it where `add`. False, with nothing done, where cuBLASLt has no algorithm for it; that of
  // f32 or 16-bit matrices without bias there always is. Sums are made in f32 and in the same order in every run.
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
