#include "dtrain/ops/relu6.h"

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/relu6_kernels.h"
#include "libdtrain/ops/relu6_math.h"

namespace dtrain {

Var relu6(Tape& tape, const Var& x) {
  Context& context = tape.context();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  DT_DISPATCH(context, relu6)(x.value, y);
  return tape.record("relu6", y, {&x}, [x = x.without_value(), y](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x)) DT_DISPATCH(t.context(), relu6_grad)(dy, y, target->dx, target->add);
  });
}

namespace cpu {

void relu6(Context&, const Tensor& x, const Tensor& y) {
  write(y, false, [x = x.data<float>()](int64_t i) { return dtrain::relu6(x[i]); });
}

void relu6_grad(Context&, const Tensor& dy, const Tensor& y, const Tensor& dx, bool add) {
  write(dx, add, [dy = dy.data<float>(), y = y.data<float>()](int64_t i) { return dtrain::relu6_grad(dy[i], y[i]); });
}

}  // namespace cpu
}  // namespace dtrain
