// Per-element arithmetic of relu6, shared by the CPU and CUDA kernels.
#pragma once

#include "dtrain/core/host_device.h"

namespace dtrain {

DT_HD inline float relu6(float x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
// Gradient of relu6's input from that of its output y.
DT_HD inline float relu6_grad(float dy, float y) { return y > 0 && y < 6 ? dy : 0.0f; }

}  // namespace dtrain
