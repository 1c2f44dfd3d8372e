#include "libdtrain/ops/blank_outside.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain {

void blank_outside(Context& context, const Tensor& x, const Tensor& sizes) {
  DT_CHECK(x.shape().rank() == 4, "blank_outside: images ", x.shape(), ", expected [n, h, w, c]");
  DT_CHECK(sizes.shape() == Shape({x.dim(0), 2}) && sizes.dtype() == DType::f32, "blank_outside: sizes ", sizes.shape(),
           " of ", sizes.dtype(), ", expected [", x.dim(0), ", 2] of f32");
  if (x.count() > 0) DT_DISPATCH(context, blank_outside)(x, sizes);
}

void cpu::blank_outside(Context&, const Tensor& x, const Tensor& sizes) {
  const int64_t rows = x.dim(1), columns = x.dim(2), channels = x.dim(3);
  parallel_ranges(
      x.dim(0) * rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* const size = sizes.data<float>() + 2 * (row / rows);
          float* const pixels = x.data<float>() + row * columns * channels;
          int64_t inside = 0;
          while (static_cast<float>(row % rows) < size[0] && inside < columns && static_cast<float>(inside) < size[1])
            ++inside;
          std::fill(pixels + inside * channels, pixels + columns * channels, 0.0f);
        }
      },
      columns * channels);
}

}  // namespace dtrain
