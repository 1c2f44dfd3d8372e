// Argument checks of box ops.
#pragma once

#include "dtrain/core/tensor.h"

namespace dtrain {

// Throws Error unless `x` is defined and has this shape and type; `what` names the op and the argument.
inline void require_tensor(const char* what, const Tensor& x, const Shape& shape, DType dtype) {
  DT_CHECK(x, what, ": expected ", shape, " of ", dtype, ", found no tensor");
  DT_CHECK(x.shape() == shape && x.dtype() == dtype, what, ": expected ", shape, " of ", dtype, ", found ", x.shape(),
           " of ", x.dtype());
}

// The same for an optional tensor.
inline void require_optional(const char* what, const Tensor& x, const Shape& shape, DType dtype) {
  if (x) require_tensor(what, x, shape, dtype);
}

// Throws Error unless `x` is defined and has this rank and type; `what` names the op, the argument and its shape.
inline void require_rank(const char* what, const Tensor& x, int rank, DType dtype) {
  DT_CHECK(x && x.shape().rank() == rank && x.dtype() == dtype, what, ": expected ", rank, " dimensions of ", dtype,
           ", found ", x.shape(), " of ", x.dtype());
}

}  // namespace dtrain
