#include "dtrain/core/tensor.h"

namespace dtrain {

Tensor::Tensor(std::shared_ptr<Storage> storage, size_t offset, Shape shape, DType dtype, Device device)
    : storage_(std::move(storage)), offset_(offset), shape_(shape), dtype_(dtype), device_(device) {
  DT_CHECK(storage_, "a tensor of ", dtype, " ", shape, " without storage");
  DT_CHECK(offset <= storage_->bytes() && bytes() <= storage_->bytes() - offset, "a tensor of ", dtype, " ", shape,
           " at byte ", offset, " of a storage of ", storage_->bytes(), " bytes");
}

Tensor Tensor::view(Shape shape) const {
  DT_CHECK(defined(), "view of an undefined tensor");
  DT_CHECK(shape.count() == count(), "view: ", shape_, " cannot be seen as ", shape);
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  DT_CHECK(defined(), "slice of an undefined tensor");
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
