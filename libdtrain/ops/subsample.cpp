#include "libdtrain/ops/subsample.h"

#include "libdtrain/core/dispatch.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/ops/subsample_math.h"

namespace dtrain {

Var subsample(Tape& tape, const Var& x, int stride, int offset) {
  const Shape& shape = x.shape();
  DT_CHECK(shape.rank() == 4 && stride >= 1 && offset >= 0 && offset < stride, "subsample: images ", shape, ", stride ",
           stride, ", offset ", offset, ", expected [n, h, w, c] and an offset from 0 to stride - 1");
  Context& context = tape.context();
  const Tensor y = context.empty(
      {shape[0], (shape[1] + stride - 1) / stride, (shape[2] + stride - 1) / stride, shape[3]}, x.value.dtype());
  DT_DISPATCH(context, subsample)(x.value, stride, offset, y);
  tape.op_watch().note(SubsampleOptions{stride, offset});
  return tape.record("subsample", y, {&x}, [x = x.without_value(), stride, offset](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), subsample_grad)(dy, stride, offset, target->dx, target->add);
  });
}

namespace cpu {
namespace {

SubsampledImages images_of(const Tensor& x, const Tensor& y, int stride, int offset) {
  return {x.dim(1), x.dim(2), y.dim(1), y.dim(2), x.dim(3), stride, offset};
}

}  // namespace

void subsample(Context&, const Tensor& x, int stride, int offset, const Tensor& y) {
  write(y, false, [x = x.data<float>(), images = images_of(x, y, stride, offset)](int64_t i) {
    const int64_t source = images.source(i);
    return source < 0 ? 0.0f : x[source];
  });
}

void subsample_grad(Context&, const Tensor& dy, int stride, int offset, const Tensor& dx, bool add) {
  write(dx, add, [dy = dy.data<float>(), images = images_of(dx, dy, stride, offset)](int64_t i) {
    const int64_t target = images.target(i);
    return target < 0 ? 0.0f : dy[target];
  });
}

}  // namespace cpu
}  // namespace dtrain
