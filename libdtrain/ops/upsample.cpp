#include "dtrain/ops/upsample.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/upsample_kernels.h"
#include "libdtrain/ops/upsample_math.h"

namespace dtrain {

namespace {

constexpr int64_t kMostExtent = 32768;  // UpsampleAxis computes in 32 bits

}  // namespace

Var upsample_nearest(Tape& tape, const Var& x, int64_t height, int64_t width, const Var* base) {
  DT_CHECK(x.shape().rank() == 4 && x.shape().count() > 0, "upsample_nearest: images ", x.shape(),
           ", expected [n, h, w, c] with elements");
  DT_CHECK(height >= x.shape()[1] && width >= x.shape()[2], "upsample_nearest: images ", x.shape(), " to ", height,
           " x ", width, ", expected no fewer rows and columns");
  DT_CHECK(std::max(height, width) <= kMostExtent, "upsample_nearest: to ", height, " x ", width, ", expected at most ",
           kMostExtent, " rows and columns");
  Context& context = tape.context();
  const Tensor y = context.empty({x.shape()[0], height, width, x.shape()[3]}, x.value.dtype());
  DT_CHECK(!base || (base->shape() == y.shape() && base->value.dtype() == y.dtype()), "upsample_nearest: base ",
           base->shape(), " of ", base->value.dtype(), ", expected ", y.shape(), " of ", y.dtype());
  DT_DISPATCH(context, upsample_nearest)(x.value, base ? base->value : Tensor(), y);
  const Var kept_base = base ? base->without_value() : Var{};
  return tape.record("upsample_nearest", y, {&x, &kept_base},
                     [x = x.without_value(), base = kept_base](Tape& t, const Tensor& dy) {
                       if (const auto target = t.grad_target(x))
                         DT_DISPATCH(t.context(), upsample_nearest_grad)(dy, target->dx, target->add);
                       if (base.needs_grad()) t.pass_grad(base, dy);
                     });
}

namespace cpu {

void upsample_nearest(Context&, const Tensor& x, const Tensor& base, const Tensor& y) {
  const UpsampleAxis rows{x.dim(1), y.dim(1)}, columns{x.dim(2), y.dim(2)};
  const int64_t channels = y.dim(3), row_count = y.dim(2) * channels;
  parallel_ranges(
      y.dim(0) * rows.out,
      [&, add = base ? base.data<float>() : nullptr](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t source = row / rows.out * rows.in + rows.source(static_cast<uint32_t>(row % rows.out));
          const float* const from = x.data<float>() + source * columns.in * channels;
          float* const to = y.data<float>() + row * row_count;
          for (uint32_t j = 0; j < columns.out; ++j) {
            const float* const pixel = from + columns.source(j) * channels;
            if (add == nullptr) {
              std::copy_n(pixel, channels, to + j * channels);
              continue;
            }
            const float* const other = add + row * row_count + j * channels;
            for (int64_t c = 0; c < channels; ++c) to[j * channels + c] = pixel[c] + other[c];
          }
        }
      },
      row_count);
}

void upsample_nearest_grad(Context&, const Tensor& dy, const Tensor& dx, bool add) {
  const UpsampleAxis rows{dx.dim(1), dy.dim(1)}, columns{dx.dim(2), dy.dim(2)};
  const int64_t channels = dx.dim(3), pixels = dx.dim(1) * dx.dim(2);
  const auto gather = [&](int64_t pixel) {
    const int64_t image = pixel / pixels;
    const auto h = static_cast<uint32_t>(pixel % pixels / columns.in), w = static_cast<uint32_t>(pixel % columns.in);
    float* const to = dx.data<float>() + pixel * channels;
    if (!add) std::fill_n(to, channels, 0.0f);
    for (uint32_t i = rows.first_copy(h); i < rows.first_copy(h + 1); ++i)
      for (uint32_t j = columns.first_copy(w); j < columns.first_copy(w + 1); ++j) {
        const float* const from = dy.data<float>() + ((image * rows.out + i) * columns.out + j) * channels;
        for (int64_t c = 0; c < channels; ++c) to[c] += from[c];
      }
  };
  parallel_ranges(
      dx.dim(0) * pixels,
      [&](int64_t begin, int64_t end) {
        for (int64_t pixel = begin; pixel < end; ++pixel) gather(pixel);
      },
      channels);
}

}  // namespace cpu
}  // namespace dtrain
