// CUDA kernels of local response normalisation: one thread per element, which reads its window of channels.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/local_response_norm_kernels.h"
#include "libdtrain/ops/local_response_norm_math.h"

namespace dtrain::cuda {
namespace {

// body(first element of the pixel, channel) for this thread's elements.
template <class Body>
__device__ void for_each_channel(int64_t count, int64_t channels, Body&& body) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads)
    body(i - i % channels, i % channels);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    response_kernel(int64_t count, int64_t channels, LocalResponseNormOptions options, const T* x, T* y, float* sums) {
  for_each_channel(count, channels, [&](int64_t row, int64_t c) {
    const float squares = sum_around(c, channels, options.radius, [&](int64_t j) {
      const float value = to_float(x[row + j]);
      return value * value;
    });
    const float s = options.bias + options.alpha * squares;
    sums[row + c] = s;
    y[row + c] = from_float<T>(to_float(x[row + c]) * std::pow(s, -options.beta));
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    response_grad_kernel(int64_t count, int64_t channels, LocalResponseNormOptions options, const T* dy, const T* x,
                         const float* sums, bool add, T* dx) {
  for_each_channel(count, channels, [&](int64_t row, int64_t c) {
    const float terms = sum_around(c, channels, options.radius, [&](int64_t j) {
      return response_term(to_float(dy[row + j]), to_float(x[row + j]), sums[row + j], options.beta);
    });
    T& to = dx[row + c];
    const float value = response_grad(to_float(dy[row + c]), to_float(x[row + c]), sums[row + c], terms, options);
    to = from_float<T>(add ? to_float(to) + value : value);
  });
}

}  // namespace

void local_response_norm(Context& context, const Tensor& x, const LocalResponseNormOptions& options, const Tensor& y,
                         const Tensor& sums) {
  if (x.count() == 0) return;
  dispatch_floating(x.dtype(), "local_response_norm", [&]<class T>(T) {
    launch(context, response_kernel<T>, {blocks_for(context, x.count(), kThreads), kThreads}, x.count(),
           x.dim(x.shape().rank() - 1), options, x.data<T>(), y.data<T>(), sums.data<float>());
  });
}

void local_response_norm_grad(Context& context, const Tensor& dy, const Tensor& x, const Tensor& sums,
                              const LocalResponseNormOptions& options, const Tensor& dx, bool add) {
  if (x.count() == 0) return;
  dispatch_floating(x.dtype(), "local_response_norm_grad", [&]<class T>(T) {
    launch(context, response_grad_kernel<T>, {blocks_for(context, x.count(), kThreads), kThreads}, x.count(),
           x.dim(x.shape().rank() - 1), options, dy.data<T>(), x.data<T>(), sums.data<float>(), add, dx.data<T>());
  });
}

}  // namespace dtrain::cuda
