// Depthwise convolutions of the CUDA arm, by kernels of our own: cuDNN's are made for groups of many channels.
#pragma once

#include "libdtrain/ops/conv2d.h"

namespace dtrain::cuda {

// As many groups as channels and filters, of filters of shape `w`.
bool is_depthwise(const Shape& x, const Shape& w, const Conv2dOptions& options);

// As conv2d and its gradients. Each element is summed in the order of the taps; dw over parts of the pixels, whose
// number follows from the shape and the device, and then over the parts in their order.
decltype(cpu::conv2d) depthwise;
decltype(cpu::conv2d_dgrad) depthwise_dgrad;
decltype(cpu::conv2d_wgrad) depthwise_wgrad;

}  // namespace dtrain::cuda
