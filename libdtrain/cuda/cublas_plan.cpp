#include "libdtrain/cuda/cublas_plan.h"

#include <algorithm>

#include "libdtrain/cuda/cublas_library.h"

namespace dtrain::cuda {
namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(Fault::resource, concat(call, ": ", cublas_lt().get_status_string(status)));
}

cudaDataType_t data_type(int64_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      throw Error(concat("GEMM of ", static_cast<DType>(dtype), ", expected f32, bf16 or f16"));
  }
}

using Layout = Owned<cublasLtMatrixLayout_t, [](auto made) { return cublas_lt().layout_destroy(made); }>;
using Operation = Owned<cublasLtMatmulDesc_t, [](auto made) { return cublas_lt().operation_destroy(made); }>;
using Preference = Owned<cublasLtMatmulPreference_t, [](auto made) { return cublas_lt().preference_destroy(made); }>;

Layout make_layout(int64_t dtype, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublas_lt().layout_create(&made, data_type(dtype), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                  rows),
        "cublasLtMatrixLayoutCreate");
  return Layout(made);
}

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t name, T value) {
  check(cublas_lt().operation_set(operation.get(), name, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t name, T value) {
  check(cublas_lt().preference_set(preference.get(), name, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

Operation make_operation(const MatmulProblem& o) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublas_lt().operation_create(&made, o.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  Operation operation(made);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, o.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, o.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (o.bias) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
  }
  return operation;
}

Preference make_preference(const MatmulProblem& o) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublas_lt().preference_create(&made), "cublasLtMatmulPreferenceCreate");
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMostWorkspace});
  // Split-K partial sums stay in f32.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, name, static_cast<uint32_t>(o.alignment));
  return preference;
}

}  // namespace

struct MatmulPlans::Plan {
  Operation operation;
  Layout a, b, d;
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  int64_t workspace = 0;

  // `bias`: an example of its address. The heuristic may find no algorithm for a null bias pointer.
  Plan(cublasLtHandle_t handle, const MatmulProblem& o, const void* bias)
      : operation(make_operation(o)),
        a(o.transpose_a ? make_layout(o.dtype, o.k, o.m) : make_layout(o.dtype, o.m, o.k)),
        b(o.transpose_b ? make_layout(o.dtype, o.n, o.k) : make_layout(o.dtype, o.k, o.n)),
        d(make_layout(o.output_dtype, o.m, o.n)) {
    if (o.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublas_lt().get_heuristic(handle, operation.get(), a.get(), b.get(), d.get(), d.get(),
                                                            make_preference(o).get(), 1, &best, &found);
    const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || (o.bias && status == CUBLAS_STATUS_INVALID_VALUE);
    if (refused || (status == CUBLAS_STATUS_SUCCESS && found == 0)) return;
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    algorithm = best.algo;
    workspace = static_cast<int64_t>(best.workspaceSize);
  }
};

MatmulPlans::MatmulPlans() {
  cublasLtHandle_t handle = nullptr;
  check(cublas_lt().create(&handle), "cublasLtCreate");
  handle_ = std::shared_ptr<cublasLtContext>(handle, [](auto* made) { static_cast<void>(cublas_lt().destroy(made)); });
}

bool MatmulPlans::run(Context& context, const MatmulProblem& problem, const MatmulOperands& operands, bool add) {
  std::shared_ptr<Plan>& plan = plans_[problem];
  if (!plan) plan = std::make_shared<Plan>(handle_.get(), problem, operands.bias);
  if (!plan->algorithm) return false;
  if (problem.bias) set(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  const Tensor workspace = context.empty({std::max<int64_t>(plan->workspace, 1)}, DType::u8);
  const float one = 1, beta = add ? 1 : 0;
  check(
      cublas_lt().matmul(handle_.get(), plan->operation.get(), &one, operands.a, plan->a.get(), operands.b,
                         plan->b.get(), &beta, operands.d, plan->d.get(), operands.d, plan->d.get(), &*plan->algorithm,
                         workspace.raw(), static_cast<size_t>(plan->workspace), context.runtime().compute()),
      "cublasLtMatmul");
  return true;
}

MatmulPlans& Runtime::matmul_plans() {
  if (!matmul_plans_) matmul_plans_ = std::make_shared<MatmulPlans>();
  return *matmul_plans_;
}

}  // namespace dtrain::cuda
