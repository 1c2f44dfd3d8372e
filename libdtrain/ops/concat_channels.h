// Concatenation of images, or of any tensors, along their channels, the innermost dimension.
#pragma once

#include <tuple>
#include <vector>

#include "libdtrain/autograd/tape.h"

namespace dtrain {

// Parts [..., c_i] of one type, equal in all dimensions but the last, to [..., c_0 + c_1 + ...]. Throws Error where
// they differ, have no dimension, or there is none.
Var concat_channels(Tape& tape, const std::vector<Var>& parts);

// Parts [n, k_i, width] in f32, to [n, k_0 + k_1 + ..., width]: the rows of each of n images after one another. No
// gradient. Throws Error where they differ in n or width.
Tensor join_rows(Context& context, const std::vector<Tensor>& parts);

// Channels [begin, begin + count) of a tensor.
struct Channels {
  Tensor tensor;
  int64_t begin, count;

  auto tensors() const { return std::tie(tensor); }
};

namespace cpu {
// Copies the channels `from` to the channels `to`, or adds them there. Both are as many, in tensors of one type whose
// other dimensions are equal.
void copy_channels(Context&, const Channels& from, const Channels& to, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::copy_channels) copy_channels;
}  // namespace cuda

}  // namespace dtrain
