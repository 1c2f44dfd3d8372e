#include "libdtrain/cuda/comparison.h"

#include <cmath>

#include "dtrain/core/rng.h"
#include "libdtrain/cuda/kernels.cuh"

namespace dtrain::cuda {
namespace {

template <class T>
__global__ __launch_bounds__(kThreads) void fill_kernel(T* to, int64_t count, uint64_t seed) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride)
    to[i] = from_float<T>(2 * unit_float(Philox::block(seed, 0, static_cast<uint64_t>(i))[0]) - 1);
}

// Per block: sums of (x - expected)^2 and of expected^2.
template <class T>
__global__ __launch_bounds__(kThreads) void distance_kernel(const T* x, const T* expected, int64_t count, double* to) {
  double* const scratch = shared_memory<double>();
  double difference = 0, size = 0;
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    const float e = to_float(expected[i]), d = to_float(x[i]) - e;
    difference += double{d} * d;
    size += double{e} * e;
  }
  difference = block_sum(difference, scratch);
  size = block_sum(size, scratch);
  if (threadIdx.x == 0) to[2 * blockIdx.x] = difference, to[2 * blockIdx.x + 1] = size;
}

// |x - expected| / |expected|
double relative_distance(Context& context, const Tensor& x, const Tensor& expected) {
  const unsigned blocks = blocks_for(context, x.count(), kThreads, 1);
  const Tensor sums = context.empty({blocks * int64_t{2 * sizeof(double)}}, DType::u8);
  dispatch_floating(x.dtype(), "relative_distance", [&](auto type) {
    using T = decltype(type);
    launch(context, distance_kernel<T>, {blocks, kThreads, kThreads / kWarp * sizeof(double)}, x.data<T>(),
           expected.data<T>(), x.count(), reinterpret_cast<double*>(sums.raw()));
  });
  std::vector<double> values(2 * blocks);
  context.download(sums, values.data(), "relative_distance");
  double difference = 0, size = 0;
  for (unsigned i = 0; i < blocks; ++i) difference += values[2 * i], size += values[2 * i + 1];
  return std::sqrt(difference / size);
}

}  // namespace

Tensor random_tensor(Context& context, Shape shape, DType dtype, uint64_t seed) {
  const Tensor tensor = context.empty(shape, dtype);
  dispatch_floating(dtype, "random_tensor", [&](auto type) {
    using T = decltype(type);
    launch(context, fill_kernel<T>, {blocks_for(context, tensor.count(), kThreads), kThreads}, tensor.data<T>(),
           tensor.count(), seed);
  });
  return tensor;
}

bool is_close(Context& context, const Tensor& x, const Tensor& expected) {
  return relative_distance(context, x, expected) < 0x1p-8;
}

}  // namespace dtrain::cuda
