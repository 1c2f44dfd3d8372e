// The largest elements of rows, and non-maximum suppression over what they select.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// scores [rows, n] of any floating-point type -> values [rows, k] f32 and indices [rows, k] i32, in descending order
// (ties: the lower index first; NaN counts as -infinity). After the n-th come -infinity and -1. `counts` is undefined
// or [rows] i32: how many elements of each row there are. -0 is 0. Throws Error where shapes or types do not fit.
void top_k(Context& context, const Tensor& scores, const Tensor& counts, const Tensor& values, const Tensor& indices);

struct NmsOptions {
  float threshold = 0.5f;  // a box whose IoU with a kept one of its group is larger is dropped
  bool plus_one = false;   // as BoxCoder::plus_one
};
// boxes [rows, k, 4] in descending order of scores [rows, k] f32, where -infinity says that there is none; groups
// [rows, k] i32 or undefined: boxes of different groups do not suppress one another -> kept [rows, m] i32, the indices
// of the first m that are kept in their order, then -1; counts [rows] i32, how many those are. Throws Error where
// shapes or types do not fit.
void nms(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& groups, const NmsOptions& options,
         const Tensor& kept, const Tensor& counts);

namespace cpu {
void top_k(Context&, const Tensor& scores, const Tensor& counts, const Tensor& values, const Tensor& indices);
void nms(Context&, const Tensor& boxes, const Tensor& scores, const Tensor& groups, const NmsOptions&,
         const Tensor& kept, const Tensor& counts);
}  // namespace cpu

namespace cuda {
decltype(cpu::top_k) top_k;
decltype(cpu::nms) nms;
}  // namespace cuda

}  // namespace dtrain
