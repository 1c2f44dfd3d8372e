#include "libdtrain/ops/gather_rows.h"

#include <cstring>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/box_checks.h"

namespace dtrain {

void gather_rows(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y) {
  require_rank("gather_rows: indices [n, k]", indices, 2, DType::i32);
  DT_CHECK(x && x.shape().rank() >= 2 && (x.dim(0) == indices.dim(0) || x.dim(0) == 1), "gather_rows: expected x [",
           indices.dim(0), ", t, ...] or [1, t, ...], found ", x.shape());
  Shape shape{indices.dim(0), indices.dim(1)};
  for (int i = 2; i < x.shape().rank(); ++i) shape.append(x.dim(i));
  require_tensor("gather_rows: y", y, shape, x.dtype());
  if (y.count() > 0) DT_DISPATCH(context, gather_rows)(x, indices, y);
}

namespace cpu {

void gather_rows(Context&, const Tensor& x, const Tensor& indices, const Tensor& y) {
  const int64_t n = indices.dim(0), k = indices.dim(1), t = x.dim(1);
  const size_t row = y.bytes() / static_cast<size_t>(n * k);
  const int64_t image_stride = x.dim(0) == 1 ? 0 : t;
  const int32_t* const index = indices.data<int32_t>();
  const char* const from = static_cast<const char*>(x.raw());
  char* const to = static_cast<char*>(y.raw());
  parallel_ranges(
      n * k,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          char* const out = to + static_cast<size_t>(i) * row;
          if (index[i] < 0 || index[i] >= t)
            std::memset(out, 0, row);
          else
            std::memcpy(out, from + static_cast<size_t>(i / k * image_stride + index[i]) * row, row);
        }
      },
      static_cast<int64_t>(row / sizeof(float)) + 4);
}

}  // namespace cpu
}  // namespace dtrain
