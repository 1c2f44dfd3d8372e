// CPU and CUDA kernels of dtrain/ops/concat_channels.h.
#pragma once

#include "dtrain/ops/concat_channels.h"

namespace dtrain {

namespace cpu {
// Copies channels `from` to channels `to`, or accumulates if `add`. Equal counts, types and other dimensions.
void copy_channels(Context&, const Channels& from, const Channels& to, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::copy_channels) copy_channels;
}  // namespace cuda

}  // namespace dtrain
