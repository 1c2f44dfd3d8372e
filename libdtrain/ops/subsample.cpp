#include "dtrain/ops/subsample.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/subsample_kernels.h"
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
  tape.op_observer().note(SubsampleOptions{stride, offset});
  return tape.record("subsample", y, {&x}, [x = x.without_value(), stride, offset](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), subsample_grad)(dy, stride, offset, target->dx, target->add);
  });
}

namespace cpu {
namespace {

// Index mapping in units of pixels.
SubsampledImages pixels_of(const Tensor& x, const Tensor& y, int stride, int offset) {
  return {x.dim(1), x.dim(2), y.dim(1), y.dim(2), 1, stride, offset};
}

// Pixel i of `to` = (or += if `add`) pixel pixel_of(i) of `from`, zeros if negative.
template <class PixelOf>
void take_pixels(const Tensor& from, const Tensor& to, bool add, const PixelOf& pixel_of) {
  const int64_t channels = to.dim(3);
  const float* const x = from.data<float>();
  float* const y = to.data<float>();
  parallel_ranges(
      to.count() / std::max<int64_t>(channels, 1),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t source = pixel_of(i);
          float* const pixel = y + i * channels;
          if (source < 0) {
            if (!add) std::fill_n(pixel, channels, 0.0f);
            continue;
          }
          for (int64_t c = 0; c < channels; ++c)
            pixel[c] = add ? pixel[c] + x[source * channels + c] : x[source * channels + c];
        }
      },
      channels);
}

}  // namespace

void subsample(Context&, const Tensor& x, int stride, int offset, const Tensor& y) {
  const SubsampledImages pixels = pixels_of(x, y, stride, offset);
  take_pixels(x, y, false, [&](int64_t i) { return pixels.source(i); });
}

void subsample_grad(Context&, const Tensor& dy, int stride, int offset, const Tensor& dx, bool add) {
  const SubsampledImages pixels = pixels_of(dx, dy, stride, offset);
  take_pixels(dy, dx, add, [&](int64_t i) { return pixels.target(i); });
}

}  // namespace cpu
}  // namespace dtrain
