#include "libdtrain/core/tensor.h"

namespace dtrain {

Tensor Tensor::view(Shape shape) const {
  DT_CHECK(shape.count() == count(), "view: ", shape_, " cannot be seen as ", shape);
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  DT_CHECK(shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0], "slice: rows [", begin, ", ", end,
           ") of ", shape_);
  Shape rows{end - begin};
  for (int i = 1; i < shape_.rank(); ++i) rows.append(shape_[i]);
  Tensor result = *this;
  const int64_t row = shape_[0] ? count() / shape_[0] : 0;
  result.offset_ += static_cast<size_t>(begin * row) * size_of(dtype_);
  result.shape_ = rows;
  return result;
}

}  // namespace dtrain
