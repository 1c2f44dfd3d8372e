// Depthwise convolution kernels for CUDA; cuDNN's are tuned for groups of many channels.
#pragma once

#include "dtrain/ops/conv2d.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain::cuda {

// Depthwise: as many groups as channels and filters, for filters of shape `w`.
bool is_depthwise(const Shape& x, const Shape& w, const Conv2dOptions& options);

// As conv2d and its gradients. Each element is summed in order of the taps; dw is a two-stage reduction over pixels,
// whose partition depends on the shape and the device only.
decltype(cpu::conv2d) depthwise;
decltype(cpu::conv2d_dgrad) depthwise_dgrad;
decltype(cpu::conv2d_wgrad) depthwise_wgrad;

}  // namespace dtrain::cuda
