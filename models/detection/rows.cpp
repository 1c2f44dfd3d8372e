#include "models/detection/rows.h"

#include "libdtrain/ops/gather_rows.h"

namespace dtrain::models {

Tensor rows_of(Context& context, const Tensor& x, const Tensor& indices) {
  Shape shape{indices.dim(0), indices.dim(1)};
  for (int i = 2; i < x.shape().rank(); ++i) shape.append(x.dim(i));
  const Tensor y = context.empty(shape, x.dtype());
  gather_rows(context, x, indices, y);
  return y;
}

}  // namespace dtrain::models
