// CUDA kernels of element-wise ops: memory-bound, one pass of 16-byte accesses with a scalar remainder.
#include "dtrain/ops/pointwise.h"
#include "libdtrain/ops/pointwise_kernels.cuh"
#include "libdtrain/ops/pointwise_kernels.h"
#include "libdtrain/ops/pointwise_math.h"

namespace dtrain::cuda {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return dtrain::relu(x); }
};
struct ReluGrad {
  __device__ float operator()(float dy, float y) const { return dtrain::relu_grad(dy, y); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct SumRelu {
  __device__ float operator()(float a, float b) const { return dtrain::relu(a + b); }
};
// Per thread and iteration: four elements, one block of random words.
template <bool add, class T>
__global__ void __launch_bounds__(kThreads) dropout_kernel(const StepScalars* scalars, float rate, uint64_t stream,
                                                           bool whole, int64_t count, const T* x, T* y) {
  const uint64_t seed = scalars->seed, step = scalars->step;
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t block = int64_t{blockIdx.x} * kThreads + threadIdx.x; 4 * block < count; block += threads) {
    const auto words = dropout_words(seed, step, stream, static_cast<uint64_t>(block));
    auto value = [&](int lane, T from, T old) {
      const float kept = to_float(from) * dropout_factor(words[static_cast<size_t>(lane)], rate);
      return from_float<T>(add ? to_float(old) + kept : kept);
    };
    if (whole && 4 * block + 4 <= count) {
      const auto from = load<T, 4>(x + 4 * block);
      auto to = add ? load<T, 4>(y + 4 * block) : from;
#pragma unroll
      for (int lane = 0; lane < 4; ++lane) to.lane[lane] = value(lane, from.lane[lane], to.lane[lane]);
      store(y + 4 * block, to);
    } else {
#pragma unroll
      for (int lane = 0; lane < 4; ++lane)
        if (const int64_t i = 4 * block + lane; i < count) y[i] = value(lane, x[i], add ? y[i] : x[i]);
    }
  }
}

// One thread per pixel: bytes are read through L1, whole pixels are written by one store.
template <class Pixel, class T>
__global__ void __launch_bounds__(kThreads)
    normalize_kernel(PixelNormalization options, bool whole, int64_t pixels, const Pixel* x, T* y) {
  constexpr int kPixels = 4;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x, threads = int64_t{gridDim.x} * kThreads;
  for (int64_t first = thread; first < pixels; first += kPixels * threads) {
    Pixel from[kPixels][3];
#pragma unroll
    for (int u = 0; u < kPixels; ++u)
      if (const int64_t pixel = first + u * threads; pixel < pixels)
        for (int c = 0; c < 3; ++c) from[u][c] = x[3 * pixel + c];
#pragma unroll
    for (int u = 0; u < kPixels; ++u) {
      const int64_t pixel = first + u * threads;
      if (pixel >= pixels) continue;
      Pack<T> to{};
      for (int c = 0; c < 3; ++c)
        to.lane[c] = from_float<T>(normalize_pixel(to_float(from[u][c]), options.mean[c], options.scale[c]));
      if (whole)
        store(y + kLanes<T> * pixel, to);
      else
        for (int c = 0; c < options.channels; ++c)
          y[options.channels * pixel + c] = c < 3 ? to.lane[c] : from_float<T>(0.0f);
    }
  }
}

__global__ void seed_loss_gradient_kernel(const StepScalars* scalars, float* dy) { *dy = scalars->loss_scale; }

}  // namespace

void relu(Context& context, const Tensor& x, const Tensor& y) {
  dispatch_floating(y.dtype(), "relu", [&]<class T>(T) { map(context, Relu{}, y.count(), y.data<T>(), x.data<T>()); });
}

void relu_grad(Context& context, const Tensor& dy, const Tensor& y, const Tensor& dx, bool add) {
  dispatch_floating(dx.dtype(), "relu_grad", [&]<class T>(T) {
    write(context, ReluGrad{}, add, dx.count(), dx.data<T>(), dy.data<T>(), y.data<T>());
  });
}

void add(Context& context, const Tensor& a, const Tensor& b, const Tensor& y) {
  dispatch_floating(y.dtype(), "add",
                    [&]<class T>(T) { map(context, Sum{}, y.count(), y.data<T>(), a.data<T>(), b.data<T>()); });
}

void add_relu(Context& context, const Tensor& a, const Tensor& b, const Tensor& y) {
  dispatch_floating(y.dtype(), "add_relu",
                    [&]<class T>(T) { map(context, SumRelu{}, y.count(), y.data<T>(), a.data<T>(), b.data<T>()); });
}

void dropout(Context& context, const Tensor& x, float rate, uint64_t stream, const Tensor& y, bool add) {
  dispatch_floating(y.dtype(), "dropout", [&]<class T>(T) {
    const int64_t count = y.count();
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const bool whole = aligned(from, 4 * sizeof(T)) && aligned(to, 4 * sizeof(T));
    launch(context, add ? dropout_kernel<true, T> : dropout_kernel<false, T>,
           {blocks_for(context, (count + 3) / 4, kThreads), kThreads}, context.scalars(), rate, stream, whole, count,
           from, to);
  });
}

void normalize_pixels(Context& context, const Tensor& x, const PixelNormalization& options, const Tensor& y) {
  dispatch_floating(y.dtype(), "normalize_pixels", [&]<class T>(T) {
    const int64_t pixels = y.count() / options.channels;
    const bool whole = options.channels == kLanes<T> && aligned(y.raw(), sizeof(Pack<T>));
    const LaunchShape shape{blocks_for(context, (pixels + 3) / 4, kThreads), kThreads};
    if (x.dtype() == DType::u8)
      launch(context, normalize_kernel<uint8_t, T>, shape, options, whole, pixels, x.data<uint8_t>(), y.data<T>());
    else
      launch(context, normalize_kernel<float, T>, shape, options, whole, pixels, x.data<float>(), y.data<T>());
  });
}

void accumulate(Context& context, const Tensor& x, const Tensor& y) {
  dispatch_floating(y.dtype(), "accumulate", [&]<class Y>(Y) {
    if (x.dtype() == y.dtype())
      return map(context, Sum{}, y.count(), y.data<Y>(), static_cast<const Y*>(y.data<Y>()), x.data<Y>());
    DT_CHECK(y.dtype() == DType::f32, "accumulate: ", x.dtype(), " onto ", y.dtype(), "; expected f32");
    dispatch_floating(x.dtype(), "accumulate", [&]<class X>(X) {
      map(context, Sum{}, y.count(), y.data<float>(), static_cast<const float*>(y.data<float>()), x.data<X>());
    });
  });
}

void seed_loss_gradient(Context& context, const Tensor& dy) {
  launch(context, seed_loss_gradient_kernel, {1, 1}, context.scalars(), dy.data<float>());
}

}  // namespace dtrain::cuda
