// Per-element arithmetic of relu6, shared by the CPU and the CUDA arm.
#pragma once

#include "libdtrain/core/host_device.h"

namespace dtrain {

DT_HD inline float relu6(float x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
// The gradient by the input of y = relu6(...), from that by the output.
DT_HD inline float relu6_grad(float dy, float y) { return y > 0 && y < 6 ? dy : 0.0f; }

}  // namespace dtrain
