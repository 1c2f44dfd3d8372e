// The fully connected layer by cuBLASLt. A row-major matrix is its transpose to a column-major library.
#include <algorithm>

#include "dtrain/ops/matmul.h"
#include "libdtrain/cuda/cublas_plan.h"
#include "libdtrain/ops/conv2d_cuda.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/matmul_kernels.h"

namespace dtrain::cuda {
namespace {

// d = op(a) op(b) as the library sees them, or += it; k is the extent that is summed over. False where there is no
// algorithm, which only a bias can cause.
bool product(Context& context, bool transpose_a, bool transpose_b, const Tensor& a, const Tensor& b, int64_t k,
             const Tensor& d, const Tensor& bias, bool add) {
  uintptr_t bits = 256;
  for (const Tensor* tensor : {&a, &b, &d}) bits |= reinterpret_cast<uintptr_t>(tensor->raw());
  MatmulProblem o{};
  o.m = d.dim(1), o.n = d.dim(0), o.k = k;
  o.transpose_a = transpose_a, o.transpose_b = transpose_b;
  o.dtype = static_cast<int64_t>(a.dtype()), o.output_dtype = static_cast<int64_t>(d.dtype());
  o.bias = bias.defined();
  o.alignment = static_cast<int64_t>(bits & -bits);
  o.tf32 = a.dtype() == DType::f32 && context.runtime().options().tf32;
  if (d.count() == 0) return true;
  const MatmulOperands operands{a.raw(), b.raw(), d.raw(), bias ? bias.raw() : nullptr};
  return context.runtime().matmul_plans().run(context, o, operands, add);
}

void require(bool found, const char* op, const Tensor& a, const Tensor& b) {
  DT_CHECK(found, op, ": cuBLASLt has no algorithm for the product of ", a.shape(), " and ", b.shape(), " of ",
           a.dtype());
}

}  // namespace

void linear(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  if (bias && product(context, true, false, w, x, x.dim(1), y, bias, false)) return;
  require(product(context, true, false, w, x, x.dim(1), y, {}, false), "linear", x, w);
  if (bias) add_bias(context, bias, y);
}

void linear_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx, bool add) {
  require(product(context, false, false, w, dy, dy.dim(1), dx, {}, add), "linear_dgrad", dy, w);
}

void linear_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw, bool add) {
  require(product(context, false, true, x, dy, x.dim(0), dw, {}, add), "linear_wgrad", x, dy);
}

}  // namespace dtrain::cuda
