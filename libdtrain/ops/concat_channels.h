// Concatenation of images, or of any tensors, along their channels, the innermost dimension.
#pragma once

#include <vector>

#include "libdtrain/autograd/tape.h"

namespace dtrain {

// Parts [..., c_i] of one type, equal in all dimensions but the last, to [..., c_0 + c_1 + ...]. Throws where they
// differ or there is none.
Var concat_channels(Tape& tape, const std::vector<Var>& parts);

// Channels [begin, begin + count) of a tensor.
struct Channels {
  Tensor tensor;
  int64_t begin, count;
};

namespace cpu {
// The tensors have equal count and type; dx is stored or added to.
void copy_channels(Context&, const Channels& from, const Channels& to, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::copy_channels) copy_channels;
}  // namespace cuda

}  // namespace dtrain
