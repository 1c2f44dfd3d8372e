// CUDA kernel of blank_outside: about a warp per row of pixels; writes the outside and reads nothing.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/blank_outside.h"

namespace dtrain::cuda {
namespace {

constexpr int kRowThreads = 128;

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    blank_kernel(int64_t count, int64_t rows, int64_t columns, int64_t channels, const float* sizes, T* x) {
  for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
    const float* const size = sizes + 2 * (row / rows);
    const bool all = !(static_cast<float>(row % rows) < size[0]);
    // First pixel at or beyond the width.
    const float inside = all || !(size[1] > 0) ? 0.0f : ceilf(fminf(size[1], static_cast<float>(columns)));
    T* const pixels = x + row * columns * channels;
    for (int64_t i = static_cast<int64_t>(inside) * channels + threadIdx.x; i < columns * channels; i += kRowThreads)
      pixels[i] = from_float<T>(0);
  }
}

}  // namespace

void blank_outside(Context& context, const Tensor& x, const Tensor& sizes) {
  const int64_t count = x.dim(0) * x.dim(1);
  dispatch_floating(x.dtype(), "blank_outside", [&]<class T>(T) {
    launch(context, blank_kernel<T>, {blocks_for(context, count * kRowThreads, kRowThreads), kRowThreads}, count,
           x.dim(1), x.dim(2), x.dim(3), sizes.data<float>(), x.data<T>());
  });
}

}  // namespace dtrain::cuda
