// Concatenation along channels, the innermost dimension.
#pragma once

#include <tuple>
#include <vector>

#include "dtrain/autograd/tape.h"

namespace dtrain {

// Parts [..., c_i] of one type, equal in all other dimensions -> [..., c_0 + c_1 + ...]. Throws Error if they differ,
// have rank 0, or there are none.
Var concat_channels(Tape& tape, const std::vector<Var>& parts);

// Parts [n, k_i, width] f32 -> [n, k_0 + k_1 + ..., width]: concatenates the rows of each image. No gradient. Throws
// Error if n or width differ.
Tensor join_rows(Context& context, const std::vector<Tensor>& parts);

// Channel slice [begin, begin + count) of a tensor.
struct Channels {
  Tensor tensor;
  int64_t begin, count;

  auto tensors() const { return std::tie(tensor); }
};

}  // namespace dtrain
