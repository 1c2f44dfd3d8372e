// Bias, its gradient, and the way of a gradient into its place. All bound by memory bandwidth.
#include "libdtrain/ops/conv2d_cuda.h"

#include "dtrain/ops/conv2d.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain::cuda {
namespace {

constexpr int kRowLanes = kThreads / kWarp;

// to[part, k] (+)= the sum of rows [part * rows_per_part, ...) of from [rows, k]. A warp runs along channels, `lanes`
// of them per thread; the warps of a block take rows in turn, and their sums are added in the order of the warps.
template <class T, int lanes>
__global__ __launch_bounds__(kThreads) void sum_rows_kernel(const T* __restrict__ from, int64_t rows,
                                                            int64_t rows_per_part, int64_t channels,
                                                            float* __restrict__ to, bool add) {
  float* const sums = shared_memory<float>();  // [kRowLanes][kWarp * lanes]
  const int lane = static_cast<int>(threadIdx.x) % kWarp, row_lane = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t first = (int64_t{blockIdx.x} * kWarp + lane) * lanes;
  const int64_t begin = int64_t{blockIdx.y} * rows_per_part;
  const int64_t end = begin + rows_per_part < rows ? begin + rows_per_part : rows;
  float sum[lanes] = {};
  if (first < channels) {
#pragma unroll 4
    for (int64_t row = begin + row_lane; row < end; row += kRowLanes) {
      const T* const at = from + row * channels + first;
      if constexpr (lanes == 1) {
        sum[0] += to_float(*at);
      } else {
        const Pack<T> values = load(at);
#pragma unroll
        for (int i = 0; i < lanes; ++i) sum[i] += to_float(values.lane[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < lanes; ++i) sums[(row_lane * lanes + i) * kWarp + lane] = sum[i];
  __syncthreads();
  for (int i = row_lane; i < lanes; i += kRowLanes) {
    if (first >= channels) continue;
    float total = 0;
    for (int r = 0; r < kRowLanes; ++r) total += sums[(r * lanes + i) * kWarp + lane];
    float* const at = to + int64_t{blockIdx.y} * channels + first + i;
    *at = add ? *at + total : total;
  }
}

template <class T, int lanes>
void launch_sum_rows(Context& context, const T* from, int64_t rows, int64_t parts, int64_t channels, float* to,
                     bool add) {
  const auto columns = static_cast<unsigned>((channels + kWarp * lanes - 1) / (kWarp * lanes));
  launch(context, sum_rows_kernel<T, lanes>,
         {{columns, static_cast<unsigned>(parts)}, kThreads, sizeof(float) * kThreads * lanes}, from, rows,
         (rows + parts - 1) / parts, channels, to, add);
}

template <class T>
void sum_rows(Context& context, const T* from, int64_t rows, int64_t parts, int64_t channels, float* to, bool add) {
  if (channels % kLanes<T> == 0 && reinterpret_cast<uintptr_t>(from) % sizeof(Pack<T>) == 0)
    launch_sum_rows<T, kLanes<T>>(context, from, rows, parts, channels, to, add);
  else
    launch_sum_rows<T, 1>(context, from, rows, parts, channels, to, add);
}

template <class T, int lanes>
__global__ __launch_bounds__(kThreads) void add_bias_kernel(const float* __restrict__ bias, int64_t channels,
                                                            int64_t count, T* __restrict__ y) {
  const int64_t stride = int64_t{gridDim.x} * kThreads * lanes;
  for (int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * lanes; at < count; at += stride) {
    const int64_t channel = at % channels;
    if constexpr (lanes == 1) {
      y[at] = from_float<T>(to_float(y[at]) + bias[channel]);
    } else {
      Pack<T> values = load(y + at);
#pragma unroll
      for (int i = 0; i < lanes; ++i) values.lane[i] = from_float<T>(to_float(values.lane[i]) + bias[channel + i]);
      store(y + at, values);
    }
  }
}

// Without channels to drop, and 16-byte addresses.
template <class T>
__global__ __launch_bounds__(kThreads) void store_packs(const T* __restrict__ from, int64_t count,
                                                        float* __restrict__ to, bool add) {
  constexpr int lanes = kLanes<T>;
  const int64_t stride = int64_t{gridDim.x} * kThreads * lanes;
  for (int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * lanes; at < count; at += stride) {
    const Pack<T> values = load(from + at);
#pragma unroll
    for (int part = 0; part < lanes; part += kLanes<float>) {
      Pack<float> sum{};
      if (add) sum = load(to + at + part);
#pragma unroll
      for (int i = 0; i < kLanes<float>; ++i) sum.lane[i] += to_float(values.lane[part + i]);
      store(to + at + part, sum);
    }
  }
}

template <class T>
__global__ __launch_bounds__(kThreads) void store_channels(const T* __restrict__ from, int64_t from_channels,
                                                           int64_t to_channels, int64_t count, float* __restrict__ to,
                                                           bool add) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x; at < count; at += stride) {
    const float value = to_float(from[at / to_channels * from_channels + at % to_channels]);
    to[at] = add ? to[at] + value : value;
  }
}

template <class T>
T* elements(const Tensor& tensor) {
  return static_cast<T*>(tensor.raw());
}

}  // namespace

void bias_grad(Context& context, const Tensor& dy, const Tensor& db, bool add) {
  constexpr int64_t kMostParts = 512, kRowsPerPart = 16 * kRowLanes;
  const int64_t channels = db.count(), rows = dy.count() / channels;
  const int64_t parts = std::clamp<int64_t>(rows / kRowsPerPart, 1, kMostParts);
  dispatch_floating(dy.dtype(), "bias_grad", [&](auto type) {
    using T = decltype(type);
    float* const to = db.data<float>();
    if (parts == 1) return sum_rows(context, elements<T>(dy), rows, 1, channels, to, add);
    const Tensor partial = context.empty({parts, channels});
    sum_rows(context, elements<T>(dy), rows, parts, channels, partial.data<float>(), false);
    sum_rows<float>(context, partial.data<float>(), parts, 1, channels, to, add);
  });
}

void add_bias(Context& context, const Tensor& bias, const Tensor& y) {
  const int64_t channels = bias.count(), count = y.count();
  if (count == 0) return;
  dispatch_floating(y.dtype(), "add_bias", [&](auto type) {
    using T = decltype(type);
    constexpr int lanes = kLanes<T>;
    if (channels % lanes == 0 && aligned(y.raw(), 16))
      launch(context, add_bias_kernel<T, lanes>, {blocks_for(context, count / lanes, kThreads), kThreads},
             bias.data<float>(), channels, count, elements<T>(y));
    else
      launch(context, add_bias_kernel<T, 1>, {blocks_for(context, count, kThreads), kThreads}, bias.data<float>(),
             channels, count, elements<T>(y));
  });
}

void store_gradient(Context& context, const Tensor& from, const Tensor& to, bool add) {
  const int64_t from_channels = from.dim(from.shape().rank() - 1), to_channels = to.dim(to.shape().rank() - 1);
  const int64_t count = to.count();
  DT_CHECK(to_channels <= from_channels && from.count() / from_channels == count / to_channels, "store_gradient: from ",
           from.shape(), " to ", to.shape());
  dispatch_floating(from.dtype(), "store_gradient", [&](auto type) {
    using T = decltype(type);
    constexpr int lanes = kLanes<T>;
    if (from_channels == to_channels && count % lanes == 0 && aligned(from.raw(), 16) && aligned(to.raw(), 16))
      launch(context, store_packs<T>, {blocks_for(context, count / lanes, kThreads), kThreads}, elements<T>(from),
             count, to.data<float>(), add);
    else
      launch(context, store_channels<T>, {blocks_for(context, count, kThreads), kThreads}, elements<T>(from),
             from_channels, to_channels, count, to.data<float>(), add);
  });
}

}  // namespace dtrain::cuda
