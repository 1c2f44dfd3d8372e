// CUDA kernels of gating ops: memory-bound, one pass.
#include "dtrain/ops/gating.h"
#include "libdtrain/ops/gating_kernels.h"
#include "libdtrain/ops/gating_math.h"
#include "libdtrain/ops/pointwise_kernels.cuh"

namespace dtrain::cuda {
namespace {

struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Scale {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct Sigmoid {
  __device__ float operator()(float x) const { return dtrain::sigmoid(x); }
};
struct SigmoidGrad {
  __device__ float operator()(float dy, float x) const { return dtrain::sigmoid_grad(dy, x); }
};
struct Silu {
  __device__ float operator()(float x) const { return dtrain::silu(x); }
};
struct SiluGrad {
  __device__ float operator()(float dy, float x) const { return dtrain::silu_grad(dy, x); }
};

}  // namespace

void mul(Context& context, const Tensor& a, const Tensor& b, const Tensor& y, bool add) {
  dispatch_floating(y.dtype(), "mul", [&]<class T>(T) {
    write(context, Product{}, add, y.count(), y.data<T>(), a.data<T>(), b.data<T>());
  });
}

void scale(Context& context, const Tensor& x, float factor, const Tensor& y, bool add) {
  dispatch_floating(y.dtype(), "scale",
                    [&]<class T>(T) { write(context, Scale{factor}, add, y.count(), y.data<T>(), x.data<T>()); });
}

void sigmoid(Context& context, const Tensor& x, const Tensor& y) {
  dispatch_floating(y.dtype(), "sigmoid",
                    [&]<class T>(T) { map(context, Sigmoid{}, y.count(), y.data<T>(), x.data<T>()); });
}

void sigmoid_grad(Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx, bool add) {
  dispatch_floating(dx.dtype(), "sigmoid_grad", [&]<class T>(T) {
    write(context, SigmoidGrad{}, add, dx.count(), dx.data<T>(), dy.data<T>(), x.data<T>());
  });
}

void silu(Context& context, const Tensor& x, const Tensor& y) {
  dispatch_floating(y.dtype(), "silu", [&]<class T>(T) { map(context, Silu{}, y.count(), y.data<T>(), x.data<T>()); });
}

void silu_grad(Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx, bool add) {
  dispatch_floating(dx.dtype(), "silu_grad", [&]<class T>(T) {
    write(context, SiluGrad{}, add, dx.count(), dx.data<T>(), dy.data<T>(), x.data<T>());
  });
}

}  // namespace dtrain::cuda
