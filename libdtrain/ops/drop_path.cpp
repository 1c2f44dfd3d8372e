#include "dtrain/ops/drop_path.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/drop_path_kernels.h"
#include "libdtrain/ops/drop_path_math.h"

namespace dtrain {

Var drop_path(Tape& tape, const Var& x, const DropPathOptions& options) {
  DT_CHECK(options.rate >= 0 && options.rate < 1 && options.steps >= 0, "drop_path: rate ", options.rate, " over ",
           options.steps, " steps, expected a rate in [0, 1) and no negative number of steps");
  DT_CHECK(x.shape().rank() >= 1, "drop_path: a scalar, expected [n, ...]");
  if (!tape.training() || options.rate == 0 || x.shape().count() == 0) return x;
  Context& context = tape.context();
  const uint64_t stream = tape.next_stream();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  DT_DISPATCH(context, drop_path)(x.value, options, stream, y, false);
  return tape.record("drop_path", y, {&x}, [x = x.without_value(), options, stream](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), drop_path)(dy, options, stream, target->dx, target->add);
  });
}

namespace cpu {

void drop_path(Context& context, const Tensor& x, const DropPathOptions& options, uint64_t stream, const Tensor& y,
               bool add) {
  const int64_t width = x.count() / x.dim(0);
  std::vector<float> factors(static_cast<size_t>(x.dim(0)));
  for (size_t i = 0; i < factors.size(); ++i)
    factors[i] = drop_path_factor(*context.scalars(), options, stream, static_cast<int64_t>(i));
  const float* const from = x.data<float>();
  float* const to = y.data<float>();
  parallel_ranges(x.count(), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t image = begin / width, last = std::min(end, (image + 1) * width);
      const float factor = factors[static_cast<size_t>(image)];
      if (add)
        for (; begin < last; ++begin) to[begin] += from[begin] * factor;
      else
        for (; begin < last; ++begin) to[begin] = from[begin] * factor;
    }
  });
}

}  // namespace cpu
}  // namespace dtrain
