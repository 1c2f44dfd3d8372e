#include "models/detection/rows.h"

#include "libdtrain/core/dispatch.h"
#include "libdtrain/ops/concat_channels.h"
#include "libdtrain/ops/gather_rows.h"

namespace dtrain::models {

Tensor rows_of(Context& context, const Tensor& x, const Tensor& indices) {
  Shape shape{indices.dim(0), indices.dim(1)};
  for (int i = 2; i < x.shape().rank(); ++i) shape.append(x.dim(i));
  const Tensor y = context.empty(shape, x.dtype());
  gather_rows(context, x, indices, y);
  return y;
}

Tensor join_rows(Context& context, const std::vector<Tensor>& parts) {
  const int64_t n = parts[0].dim(0), width = parts[0].dim(2);
  int64_t rows = 0, begin = 0;
  for (const Tensor& part : parts) rows += part.dim(1);
  const Tensor all = context.empty({n, rows * width});
  for (const Tensor& part : parts) {
    const int64_t count = part.dim(1) * width;
    DT_DISPATCH(context, copy_channels)({part.view({n, count}), 0, count}, {all, begin, count}, false);
    begin += count;
  }
  return all.view({n, rows, width});
}

}  // namespace dtrain::models
