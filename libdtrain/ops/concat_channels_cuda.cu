// CUDA kernels of concatenation: vectorised 16-byte copies where channel ranges are aligned to them.
#include <numeric>

#include "dtrain/ops/concat_channels.h"
#include "libdtrain/core/divisor.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/concat_channels_kernels.h"

namespace dtrain::cuda {
namespace {

// `accesses` of n elements per row
template <int n, bool add, class T>
__global__ void __launch_bounds__(kThreads)
    copy_channels_kernel(uint32_t count, Divisor accesses, const T* x, int64_t x_stride, T* y, int64_t y_stride) {
  const uint32_t threads = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += threads) {
    uint32_t row = i;
    const int64_t at = int64_t{accesses.split(row)} * n;
    auto pack = load<T, n>(x + row * x_stride + at);
    if constexpr (add) {
      const auto old = load<T, n>(y + row * y_stride + at);
      for (int lane = 0; lane < n; ++lane)
        pack.lane[lane] = from_float<T>(to_float(old.lane[lane]) + to_float(pack.lane[lane]));
    }
    store(y + row * y_stride + at, pack);
  }
}

int64_t stride_of(const Channels& channels) { return channels.tensor.dim(channels.tensor.shape().rank() - 1); }

}  // namespace

void copy_channels(Context& context, const Channels& from, const Channels& to, bool add) {
  const int64_t x_stride = stride_of(from), y_stride = stride_of(to);
  if (to.tensor.count() == 0 || to.count == 0) return;
  const int64_t rows = to.tensor.count() / y_stride;
  // Greatest common divisor of offsets, strides and length: bounds the vector width.
  int64_t step = to.count;
  for (const int64_t channels : {x_stride, y_stride, from.begin, to.begin}) step = std::gcd(step, channels);
  dispatch_lanes("concat_channels", to.tensor.dtype(), step, {from.tensor.raw(), to.tensor.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   const int64_t accesses = to.count / n, count = rows * accesses;
                   DT_CHECK(count < int64_t{1} << 31, "concat_channels: a part of ", rows * to.count,
                            " elements; expected fewer than 2^31 accesses");
                   launch(context, add ? copy_channels_kernel<n, true, T> : copy_channels_kernel<n, false, T>,
                          {blocks_for(context, count, kThreads), kThreads}, static_cast<uint32_t>(count),
                          Divisor(accesses), from.tensor.data<T>() + from.begin, x_stride,
                          to.tensor.data<T>() + to.begin, y_stride);
                 });
}

}  // namespace dtrain::cuda
