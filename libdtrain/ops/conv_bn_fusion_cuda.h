// The fused convolutions that cuDNN has, in f16 only: what the choices of conv_bn_fusion_cuda.cu are between.
#pragma once

#include "libdtrain/ops/conv_bn_fusion.h"

namespace dtrain::cuda {

// conv2d that also makes, as y is written, the sums per channel of y's values and of their squares, f32 [k]. False,
// with nothing done, where the library has no engine for it.
bool conv2d_with_statistics(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                            const ChannelSums& sums);
// Milliseconds by which that takes longer than conv2d alone; infinite where it is not supported, 0 where nothing is
// measured. It runs both once per shape; what the tensors hold is not touched.
float statistics_cost(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                      const ChannelSums& sums);

// Whether the library has engines for conv2d_on_load and conv2d_wgrad_on_load.
bool on_load_supported(Context&, const Tensor& x, const OnLoad&, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                       const ChannelSums& sums);
// conv2d_with_statistics of relu(x * scale + shift), made as x is read.
void conv2d_on_load(Context&, const Tensor& x, const OnLoad&, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                    const ChannelSums& sums);

// conv2d_dgrad that begins the gradient of the batch norm `before`, see conv2d_dgrad_before; with dx undefined nothing
// is done. False where the library has no engine for it.
bool conv2d_dgrad_with_sums(Context&, const Tensor& dy, const Tensor& w, const Conv2dOptions&, BatchNormSaved& before,
                            const Tensor& dx);

}  // namespace dtrain::cuda
