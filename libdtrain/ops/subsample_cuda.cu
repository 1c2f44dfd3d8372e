#include "dtrain/ops/subsample.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/subsample_kernels.h"
#include "libdtrain/ops/subsample_math.h"

namespace dtrain::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads) subsample_kernel(SubsampledImages images, int64_t count, const T* x, T* y) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    const int64_t source = images.source(i);
    y[i] = source < 0 ? from_float<T>(0) : x[source];
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    subsample_grad_kernel(SubsampledImages images, int64_t count, const T* dy, bool add, T* dx) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    const int64_t target = images.target(i);
    const float gradient = target < 0 ? 0.0f : to_float(dy[target]);
    dx[i] = from_float<T>(add ? to_float(dx[i]) + gradient : gradient);
  }
}

SubsampledImages images_of(const Tensor& x, const Tensor& y, int stride, int offset) {
  return {x.dim(1), x.dim(2), y.dim(1), y.dim(2), x.dim(3), stride, offset};
}

}  // namespace

void subsample(Context& context, const Tensor& x, int stride, int offset, const Tensor& y) {
  dispatch_floating(y.dtype(), "subsample", [&]<class T>(T) {
    launch(context, subsample_kernel<T>, {blocks_for(context, y.count(), kThreads), kThreads},
           images_of(x, y, stride, offset), y.count(), x.data<T>(), y.data<T>());
  });
}

void subsample_grad(Context& context, const Tensor& dy, int stride, int offset, const Tensor& dx, bool add) {
  dispatch_floating(dx.dtype(), "subsample_grad", [&]<class T>(T) {
    launch(context, subsample_grad_kernel<T>, {blocks_for(context, dx.count(), kThreads), kThreads},
           images_of(dx, dy, stride, offset), dx.count(), dy.data<T>(), add, dx.data<T>());
  });
}

}  // namespace dtrain::cuda
