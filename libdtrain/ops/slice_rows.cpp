#include "dtrain/ops/slice_rows.h"

#include "dtrain/ops/pointwise.h"

namespace dtrain {

Var slice_rows(Tape& tape, const Var& x, int64_t begin, int64_t end) {
  DT_CHECK(x.shape().rank() >= 1 && 0 <= begin && begin <= end && end <= x.shape()[0], "slice_rows: rows [", begin,
           ", ", end, ") of ", x.shape());
  return tape.record("slice_rows", x.value.slice(begin, end), {&x},
                     [x = x.without_value(), begin, end](Tape& t, const Tensor& dy) {
                       const auto target = t.grad_target(x);
                       if (!target->add) t.context().fill_zero(target->dx);
                       accumulate(t.context(), dy, target->dx.slice(begin, end));
                     });
}

}  // namespace dtrain
