#include <dnnl.h>

#include "dtrain/ops/pointwise.h"
#include "libdtrain/cuda/cublas_plan.h"
#include "libdtrain/ops/pointwise_kernels.h"
#include "tests/emulation/libraries.h"

namespace dtrain::cuda {
namespace {

// Column-major d is row-major d^T = op(b)^T op(a)^T.
void multiply(Context& cpu, const MatmulProblem& o, const MatmulOperands& operands, bool add) {
  const auto dtype = static_cast<DType>(o.dtype), output_dtype = static_cast<DType>(o.output_dtype);
  const Tensor a = read(cpu, operands.a, {o.m * o.k}, dtype), b = read(cpu, operands.b, {o.k * o.n}, dtype);
  const Tensor d = read(cpu, operands.d, {o.n, o.m}, output_dtype);
  const dnnl_status_t status = dnnl_sgemm(o.transpose_b ? 'T' : 'N', o.transpose_a ? 'T' : 'N', o.n, o.m, o.k, 1,
                                          b.data<float>(), o.transpose_b ? o.n : o.k, a.data<float>(),
                                          o.transpose_a ? o.k : o.m, add ? 1.0f : 0.0f, d.data<float>(), o.m);
  DT_CHECK(status == dnnl_success, "dnnl_sgemm: status ", status);
  if (operands.bias) {
    const Tensor bias = read(cpu, operands.bias, {o.m}, DType::f32);
    for (int64_t row = 0; row < o.n; ++row) cpu::accumulate(cpu, bias, d.slice(row, row + 1).view({o.m}));
  }
  write(d, operands.d, output_dtype);
}

}  // namespace

bool MatmulPlans::run(Context& context, const MatmulProblem& problem, const MatmulOperands& operands, bool add) {
  if (problem.bias && static_cast<DType>(problem.dtype) == DType::f16) return false;
  queue(context, [=](Context& cpu) { multiply(cpu, problem, operands, add); });
  return true;
}

MatmulPlans& Runtime::matmul_plans() {
  if (!matmul_plans_) matmul_plans_ = std::make_shared<MatmulPlans>();
  return *matmul_plans_;
}

}  // namespace dtrain::cuda
