#include "models/detection/rows.h"

#include "dtrain/ops/top_k.h"
#include "libdtrain/ops/gather_rows.h"

namespace dtrain::models {

Tensor rows_of(Context& context, const Tensor& x, const Tensor& indices) {
  Shape shape{indices.dim(0), indices.dim(1)};
  for (int i = 2; i < x.shape().rank(); ++i) shape.append(x.dim(i));
  const Tensor y = context.empty(shape, x.dtype());
  gather_rows(context, x, indices, y);
  return y;
}

Tensor places_with_score(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& counts) {
  constexpr NmsOptions kKeepAll{.threshold = 2};  // IoU never exceeds 1
  const Tensor places = context.empty(scores.shape(), DType::i32);
  nms(context, boxes, scores, {}, kKeepAll, places, counts);
  return places;
}

}  // namespace dtrain::models
