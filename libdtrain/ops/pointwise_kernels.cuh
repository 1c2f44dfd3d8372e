// Element-wise kernels: one pass of 16-byte accesses with a scalar remainder.
#pragma once

#include "libdtrain/cuda/kernels.cuh"

namespace dtrain::cuda {

inline constexpr int kMapThreads = 256;
inline constexpr int kMapUnroll = 2;  // accesses in flight per thread and tensor

// old + f(x...)
template <class F>
struct Adding {
  F f;
  template <class... X>
  __device__ float operator()(float old, X... x) const {
    return old + f(x...);
  }
};

template <int n, class Y, class F, class... X>
__device__ Pack<Y, n> map_lanes(F f, const Pack<X, n>&... x) {
  Pack<Y, n> y;
#pragma unroll
  for (int i = 0; i < n; ++i) y.lane[i] = from_float<Y>(f(to_float(x.lane[i])...));
  return y;
}

// y[i] = f(x[i]...): `packs` packs of n elements, then single elements up to `count`. y may alias an x.
template <int n, class F, class Y, class... X>
__global__ void __launch_bounds__(kMapThreads) map_kernel(F f, int64_t packs, int64_t count, Y* y, const X*... x) {
  const int64_t thread = int64_t{blockIdx.x} * kMapThreads + threadIdx.x, threads = int64_t{gridDim.x} * kMapThreads;
  for (int64_t first = thread; first < packs; first += kMapUnroll * threads) {
    Pack<Y, n> result[kMapUnroll];
#pragma unroll
    for (int u = 0; u < kMapUnroll; ++u)
      if (const int64_t pack = first + u * threads; pack < packs)
        result[u] = map_lanes<n, Y>(f, load<X, n>(x + n * pack)...);
#pragma unroll
    for (int u = 0; u < kMapUnroll; ++u)
      if (const int64_t pack = first + u * threads; pack < packs) store(y + n * pack, result[u]);
  }
#pragma unroll 1
  for (int64_t i = n * packs + thread; i < count; i += threads) y[i] = from_float<Y>(f(to_float(x[i])...));
}

template <class F, class Y, class... X>
void map(Context& context, F f, int64_t count, Y* y, const X*... x) {
  constexpr int n = std::min({kLanes<Y>, kLanes<X>...});
  const bool whole = aligned(y, n * sizeof(Y)) && (aligned(x, n * sizeof(X)) && ...);
  const int64_t packs = whole ? count / n : 0;
  const int64_t work = whole ? (packs + kMapUnroll - 1) / kMapUnroll : count;
  launch(context, map_kernel<n, F, Y, X...>, {blocks_for(context, work, kMapThreads), kMapThreads}, f, packs, count, y,
         x...);
}

// y = f(x...) or y += f(x...)
template <class F, class Y, class... X>
void write(Context& context, F f, bool add, int64_t count, Y* y, const X*... x) {
  if (add)
    map(context, Adding<F>{f}, count, y, static_cast<const Y*>(y), x...);
  else
    map(context, f, count, y, x...);
}

}  // namespace dtrain::cuda
