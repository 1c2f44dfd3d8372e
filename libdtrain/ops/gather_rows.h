// Gather of rows within each image of a batch. No gradient: for boxes and scores.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// x [n, t, ...], or [1, t, ...] shared by all images, of any type; indices [n, k] i32 -> y [n, k, ...]. Rows of
// negative or out-of-range indices are zero.
void gather_rows(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y);

namespace cpu {
void gather_rows(Context&, const Tensor& x, const Tensor& indices, const Tensor& y);
}  // namespace cpu

namespace cuda {
decltype(cpu::gather_rows) gather_rows;
}  // namespace cuda

}  // namespace dtrain
