// CUDA kernels of nearest up-sampling: one thread per pack of an output pixel; backward gathers.
#include "dtrain/ops/upsample.h"
#include "libdtrain/core/divisor.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/upsample_kernels.h"
#include "libdtrain/ops/upsample_math.h"

namespace dtrain::cuda {
namespace {

constexpr int kBlocks = 4;  // resident per multiprocessor: limits registers

// Packs of images and their pixels.
struct UpsamplePacks {
  Divisor per_pixel, columns, rows;
  uint32_t count;

  struct Place {
    int64_t image;
    uint32_t h, w;
    int64_t channel;
  };
  template <int n>
  __device__ Place at(uint32_t i) const {
    const uint32_t pack = per_pixel.split(i), w = columns.split(i), h = rows.split(i);
    return {i, h, w, int64_t{n} * pack};
  }
};

template <int n>
UpsamplePacks upsample_packs(const Tensor& images) {
  const int64_t count = images.count() / n;
  DT_CHECK(count < int64_t{1} << 31, "upsample_nearest: images ", images.shape(), ", expected fewer than 2^31 packs");
  return {Divisor(images.dim(3) / n), Divisor(images.dim(2)), Divisor(images.dim(1)), static_cast<uint32_t>(count)};
}

template <class T, int n>
__device__ void add_to(Pack<T, n>& sum, const Pack<T, n>& x) {
#pragma unroll
  for (int i = 0; i < n; ++i) sum.lane[i] = from_float<T>(to_float(sum.lane[i]) + to_float(x.lane[i]));
}

// `base` may be null.
template <class T, int n>
__global__ void __launch_bounds__(kThreads, kBlocks)
    upsample_kernel(UpsamplePacks packs, UpsampleAxis rows, UpsampleAxis columns, int64_t channels, const T* x,
                    const T* base, T* y) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < packs.count; i += gridDim.x * kThreads) {
    const auto at = packs.at<n>(i);
    const int64_t row = at.image * rows.in + rows.source(at.h);
    const uint32_t column = columns.source(at.w);
    auto pack = load<T, n>(x + (row * columns.in + column) * channels + at.channel);
    if (base != nullptr) add_to(pack, load<T, n>(base + int64_t{i} * n));
    store(y + int64_t{i} * n, pack);
  }
}

template <class T, int n>
__global__ void __launch_bounds__(kThreads, kBlocks)
    upsample_grad_kernel(UpsamplePacks packs, UpsampleAxis rows, UpsampleAxis columns, int64_t channels, const T* dy,
                         bool add, T* dx) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < packs.count; i += gridDim.x * kThreads) {
    const auto at = packs.at<n>(i);
    Pack<T, n> old{};
    if (add) old = load<T, n>(dx + int64_t{i} * n);
    float sum[n];
#pragma unroll
    for (int lane = 0; lane < n; ++lane) sum[lane] = add ? to_float(old.lane[lane]) : 0.0f;
    for (uint32_t p = rows.first_copy(at.h); p < rows.first_copy(at.h + 1); ++p)
      for (uint32_t q = columns.first_copy(at.w); q < columns.first_copy(at.w + 1); ++q) {
        const auto pack = load<T, n>(dy + ((at.image * rows.out + p) * columns.out + q) * channels + at.channel);
#pragma unroll
        for (int lane = 0; lane < n; ++lane) sum[lane] += to_float(pack.lane[lane]);
      }
    Pack<T, n> result;
#pragma unroll
    for (int lane = 0; lane < n; ++lane) result.lane[lane] = from_float<T>(sum[lane]);
    store(dx + int64_t{i} * n, result);
  }
}

}  // namespace

void upsample_nearest(Context& context, const Tensor& x, const Tensor& base, const Tensor& y) {
  const UpsampleAxis rows{x.dim(1), y.dim(1)}, columns{x.dim(2), y.dim(2)};
  const void* const other = base ? base.raw() : nullptr;
  dispatch_lanes("upsample_nearest", y.dtype(), y.dim(3), {x.raw(), other, y.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   const auto packs = upsample_packs<n>(y);
                   launch(context, upsample_kernel<T, n>, {blocks_for(context, packs.count, kThreads), kThreads}, packs,
                          rows, columns, y.dim(3), x.data<T>(), base ? base.data<T>() : nullptr, y.data<T>());
                 });
}

void upsample_nearest_grad(Context& context, const Tensor& dy, const Tensor& dx, bool add) {
  const UpsampleAxis rows{dx.dim(1), dy.dim(1)}, columns{dx.dim(2), dy.dim(2)};
  dispatch_lanes("upsample_nearest_grad", dx.dtype(), dx.dim(3), {dy.raw(), dx.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   const auto packs = upsample_packs<n>(dx);
                   launch(context, upsample_grad_kernel<T, n>, {blocks_for(context, packs.count, kThreads), kThreads},
                          packs, rows, columns, dx.dim(3), dy.data<T>(), add, dx.data<T>());
                 });
}

}  // namespace dtrain::cuda
