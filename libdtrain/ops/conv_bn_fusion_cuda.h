// cuDNN's convolutions with fused batch-norm parts, f16 only, for the autotuner of conv_bn_fusion_cuda.cu.
#pragma once

#include "libdtrain/ops/conv_bn_fusion.h"

namespace dtrain::cuda {

// conv2d that also stores the sums per channel of y and of its squares, f32 [k]. Returns false, without effect, if
// cuDNN has no engine for it.
bool conv2d_with_statistics(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                            const ChannelStatistics& sums);
// Time of conv2d_with_statistics beyond conv2d, in milliseconds: measured once per shape; infinite if unsupported, 0 if
// not measured. The tensors are not changed.
float statistics_cost(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                      const ChannelStatistics& sums);

// Whether cuDNN has engines for conv2d_on_load and conv2d_wgrad_on_load.
bool on_load_supported(Context&, const Tensor& x, const OnLoad&, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                       const ChannelStatistics& sums);
// conv2d_with_statistics of relu(x * scale + shift), computed on load.
void conv2d_on_load(Context&, const Tensor& x, const OnLoad&, const Tensor& w, const Conv2dOptions&, const Tensor& y,
                    const ChannelStatistics& sums);

// conv2d_dgrad that fuses the reductions of the gradient of the batch norm `before`, see conv2d_dgrad_before. Returns
// false if cuDNN has no engine for it. If dx is undefined, only that is tested.
bool conv2d_dgrad_with_sums(Context&, const Tensor& dy, const Tensor& w, const Conv2dOptions&, BatchNormSaved& before,
                            const Tensor& dx);

}  // namespace dtrain::cuda
