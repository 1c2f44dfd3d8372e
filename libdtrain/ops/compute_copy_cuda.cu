// CUDA kernels of compute copies.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/compute_copy.h"

namespace dtrain::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads) round_values_kernel(const float* x, int64_t count, T* y) {
  const int64_t groups = count / kGroup, threads = int64_t{gridDim.x} * kThreads;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
#pragma unroll 4
  for (int64_t i = thread; i < groups; i += threads) {
    const auto from = load(x + kGroup * i);
    Pack<T, kGroup> to;
    for (int lane = 0; lane < kGroup; ++lane) to.lane[lane] = from_float<T>(from.lane[lane]);
    store(y + kGroup * i, to);
  }
  for (int64_t i = kGroup * groups + thread; i < count; i += threads) y[i] = from_float<T>(x[i]);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    pad_channels_kernel(const float* x, int channels, int padded, int64_t count, T* y) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads) {
    const int64_t tap = i / padded, c = i % padded;
    y[i] = from_float<T>(c < channels ? x[tap * channels + c] : 0.0f);
  }
}

}  // namespace

void round_values(Context& context, const Tensor& x, const Tensor& y) {
  dispatch_floating(y.dtype(), "round_values", [&](auto zero) {
    using T = decltype(zero);
    launch(context, round_values_kernel<T>, {blocks_for(context, x.count() / kGroup, kThreads), kThreads},
           x.data<float>(), x.count(), y.data<T>());
  });
}

void pad_channels(Context& context, const Tensor& x, const Tensor& y) {
  dispatch_floating(y.dtype(), "pad_channels", [&](auto zero) {
    using T = decltype(zero);
    launch(context, pad_channels_kernel<T>, {blocks_for(context, y.count(), kThreads), kThreads}, x.data<float>(),
           x.dim(3), y.dim(3), y.count(), y.data<T>());
  });
}

}  // namespace dtrain::cuda
