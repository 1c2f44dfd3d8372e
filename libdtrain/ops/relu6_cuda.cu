#include "dtrain/ops/relu6.h"
#include "libdtrain/ops/pointwise_kernels.cuh"
#include "libdtrain/ops/relu6_kernels.h"
#include "libdtrain/ops/relu6_math.h"

namespace dtrain::cuda {
namespace {

struct Relu6 {
  __device__ float operator()(float x) const { return dtrain::relu6(x); }
};
struct Relu6Grad {
  __device__ float operator()(float dy, float y) const { return dtrain::relu6_grad(dy, y); }
};

}  // namespace

void relu6(Context& context, const Tensor& x, const Tensor& y) {
  dispatch_floating(y.dtype(), "relu6",
                    [&]<class T>(T) { map(context, Relu6{}, y.count(), y.data<T>(), x.data<T>()); });
}

void relu6_grad(Context& context, const Tensor& dy, const Tensor& y, const Tensor& dx, bool add) {
  dispatch_floating(dx.dtype(), "relu6_grad", [&]<class T>(T) {
    write(context, Relu6Grad{}, add, dx.count(), dx.data<T>(), dy.data<T>(), y.data<T>());
  });
}

}  // namespace dtrain::cuda
