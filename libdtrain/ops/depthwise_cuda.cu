// Depthwise convolution. A thread handles one pack of channels for several pixels; the block stages weights in shared
// memory as [taps][channels of the block].
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/depthwise_cuda.h"

namespace dtrain::cuda {
namespace {

constexpr int kMostPacks = 32;  // packs of one pixel per block

struct Geometry {
  int n, h, w, c;  // of x
  int p, q;        // of y
  int r, s;
  int stride_h, stride_w, dilation_h, dilation_w, top, left;

  Geometry(const Tensor& x, const Tensor& y, int64_t rows, int64_t columns, const Conv2dOptions& o)
      : n(static_cast<int>(x.dim(0))),
        h(static_cast<int>(x.dim(1))),
        w(static_cast<int>(x.dim(2))),
        c(static_cast<int>(x.dim(3))),
        p(static_cast<int>(y.dim(1))),
        q(static_cast<int>(y.dim(2))),
        r(static_cast<int>(rows)),
        s(static_cast<int>(columns)),
        stride_h(o.stride.h),
        stride_w(o.stride.w),
        dilation_h(o.dilation.h),
        dilation_w(o.dilation.w),
        top(o.padding.top),
        left(o.padding.left) {}
};

// Partition of a pixel's packs among blocks and of pixels among a block's threads.
struct Deal {
  int packs, per_block, blocks, pixels;

  Deal(int64_t channels, int lanes) : packs(static_cast<int>(channels / lanes)) {
    blocks = (packs + kMostPacks - 1) / kMostPacks;
    per_block = (packs + blocks - 1) / blocks;
    pixels = kThreads / per_block;
  }
};

// Pack of this thread, or -1, and its first pixel.
struct Share {
  int pack, slot;
  __device__ Share(const Deal& deal) {
    const int thread = static_cast<int>(threadIdx.x);
    slot = thread / deal.per_block;
    pack = static_cast<int>(blockIdx.y) * deal.per_block + thread % deal.per_block;
    if (slot >= deal.pixels || pack >= deal.packs) pack = -1;
  }
};

// Loads the weights of the block's channels into shared memory, transposed.
template <class T>
__device__ const float* shared_weights(const T* w, const Geometry& g, const Deal& deal, int lanes) {
  float* const to = shared_memory<float>();
  const int channels = deal.per_block * lanes, first = static_cast<int>(blockIdx.y) * channels, taps = g.r * g.s;
  for (int i = static_cast<int>(threadIdx.x); i < taps * channels; i += kThreads) {
    const int c = first + i % channels;
    to[i] = c < g.c ? to_float(w[int64_t{c} * taps + i / channels]) : 0.0f;
  }
  __syncthreads();
  return to;
}

template <class T, int n>
__device__ void add_product(const T* x, const float* w, float (&sum)[n]) {
  const Pack<T, n> values = load<T, n>(x);
#pragma unroll
  for (int i = 0; i < n; ++i) sum[i] += w[i] * to_float(values.lane[i]);
}

template <class T, int n>
__device__ void store_sums(const float (&sum)[n], bool add, T* to) {
  Pack<T, n> pack;
  if (add) pack = load<T, n>(to);
#pragma unroll
  for (int i = 0; i < n; ++i) pack.lane[i] = from_float<T>(add ? to_float(pack.lane[i]) + sum[i] : sum[i]);
  store(to, pack);
}

// Unrolled filter rows for filters of k rows; large filters have enough loads in flight per row, and unrolling them
// slows compilation.
template <int k>
constexpr int kUnrolledRows = k == 3 || k == 5 ? k : 1;

// k: compile-time height and width of square filters; 0: any.
template <class T, int n, int k>
__global__ __launch_bounds__(kThreads) void forward_kernel(Geometry g, Deal deal, const T* __restrict__ x,
                                                           const T* __restrict__ w, const float* __restrict__ bias,
                                                           T* __restrict__ y) {
  const float* const weights = shared_weights(w, g, deal, n);
  const Share share(deal);
  if (share.pack < 0) return;
  [[maybe_unused]] constexpr int kUnrolled = kUnrolledRows<k>;
  const int rows = k > 0 ? k : g.r, columns = k > 0 ? k : g.s, channel = share.pack * n;
  const int tap_stride = deal.per_block * n;
  const float* const own = weights + channel % tap_stride;
  const int64_t pixels = int64_t{g.n} * g.p * g.q, step = int64_t{gridDim.x} * deal.pixels;
  for (int64_t pixel = int64_t{blockIdx.x} * deal.pixels + share.slot; pixel < pixels; pixel += step) {
    const int q = static_cast<int>(pixel % g.q), p = static_cast<int>(pixel / g.q % g.p);
    const T* const image = x + pixel / g.q / g.p * g.h * g.w * g.c + channel;
    float sum[n] = {};
    if (bias)
#pragma unroll
      for (int i = 0; i < n; ++i) sum[i] = bias[channel + i];
#pragma unroll kUnrolled
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int s = 0; s < columns; ++s) {
        const int h = p * g.stride_h + r * g.dilation_h - g.top, v = q * g.stride_w + s * g.dilation_w - g.left;
        if (h >= 0 && h < g.h && v >= 0 && v < g.w)
          add_product(image + (int64_t{h} * g.w + v) * g.c, own + (r * columns + s) * tap_stride, sum);
      }
    store_sums(sum, false, y + pixel * g.c + channel);
  }
}

// stride: compile-time stride of both axes; 0: any.
template <class T, int n, int k, int stride>
__global__ __launch_bounds__(kThreads) void dgrad_kernel(Geometry g, Deal deal, const T* __restrict__ dy,
                                                         const T* __restrict__ w, bool add, T* __restrict__ dx) {
  const float* const weights = shared_weights(w, g, deal, n);
  const Share share(deal);
  if (share.pack < 0) return;
  [[maybe_unused]] constexpr int kUnrolled = kUnrolledRows<k>;
  const int rows = k > 0 ? k : g.r, columns = k > 0 ? k : g.s, channel = share.pack * n;
  const int stride_h = stride > 0 ? stride : g.stride_h, stride_w = stride > 0 ? stride : g.stride_w;
  const int tap_stride = deal.per_block * n;
  const float* const own = weights + channel % tap_stride;
  const int64_t pixels = int64_t{g.n} * g.h * g.w, step = int64_t{gridDim.x} * deal.pixels;
  for (int64_t pixel = int64_t{blockIdx.x} * deal.pixels + share.slot; pixel < pixels; pixel += step) {
    const int v = static_cast<int>(pixel % g.w), h = static_cast<int>(pixel / g.w % g.h);
    const T* const image = dy + pixel / g.w / g.h * g.p * g.q * g.c + channel;
    float sum[n] = {};
#pragma unroll kUnrolled
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int s = 0; s < columns; ++s) {
        const int reach_h = h + g.top - r * g.dilation_h, reach_w = v + g.left - s * g.dilation_w;
        if (reach_h < 0 || reach_w < 0 || reach_h % stride_h != 0 || reach_w % stride_w != 0) continue;
        const int p = reach_h / stride_h, q = reach_w / stride_w;
        if (p < g.p && q < g.q)
          add_product(image + (int64_t{p} * g.q + q) * g.c, own + (r * columns + s) * tap_stride, sum);
      }
    store_sums(sum, add, dx + pixel * g.c + channel);
  }
}

// One partition of the pixels (blockIdx.x) and `taps` taps of a filter row, from blockIdx.z * taps on. to [parts][r *
// s][c]
template <class T, int n, int taps>
__global__ __launch_bounds__(kThreads) void wgrad_kernel(Geometry g, Deal deal, const T* __restrict__ x,
                                                         const T* __restrict__ dy, float* __restrict__ to) {
  float* const block_sums = shared_memory<float>();  // [kThreads][n]
  const Share share(deal);
  const int first_tap = static_cast<int>(blockIdx.z) * taps, r = first_tap / g.s, first_s = first_tap % g.s;
  const int64_t pixels = int64_t{g.n} * g.p * g.q, parts = gridDim.x;
  const int64_t begin = pixels * blockIdx.x / parts, end = pixels * (blockIdx.x + 1) / parts;
  float sum[taps][n] = {};
  for (int64_t pixel = begin + share.slot; share.pack >= 0 && pixel < end; pixel += deal.pixels) {
    const int q = static_cast<int>(pixel % g.q), p = static_cast<int>(pixel / g.q % g.p);
    const int h = p * g.stride_h + r * g.dilation_h - g.top;
    if (h < 0 || h >= g.h) continue;
    const T* const row = x + (pixel / g.q / g.p * g.h + h) * g.w * g.c + share.pack * n;
    const Pack<T, n> gradient = load<T, n>(dy + pixel * g.c + share.pack * n);
    float values[n];
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] = to_float(gradient.lane[i]);
#pragma unroll
    for (int s = 0; s < taps; ++s) {
      const int v = q * g.stride_w + (first_s + s) * g.dilation_w - g.left;
      if (v >= 0 && v < g.w) add_product(row + int64_t{v} * g.c, values, sum[s]);
    }
  }
#pragma unroll
  for (int s = 0; s < taps; ++s) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < n; ++i) block_sums[threadIdx.x * n + i] = sum[s][i];
    __syncthreads();
    if (share.slot > 0 || share.pack < 0) continue;
    for (int i = 0; i < n; ++i) {
      float total = 0;
      for (int slot = 0; slot < deal.pixels; ++slot)
        total += block_sums[(slot * deal.per_block + static_cast<int>(threadIdx.x)) * n + i];
      to[(int64_t{blockIdx.x} * g.r * g.s + first_tap + s) * g.c + share.pack * n + i] = total;
    }
  }
}

// Second stage: dw [c][taps] = or += sum over parts of sums [parts][taps][c].
__global__ __launch_bounds__(kThreads) void add_parts_kernel(const float* __restrict__ sums, int parts, int taps,
                                                             int channels, bool add, float* __restrict__ dw) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= taps * channels) return;
  float total = 0;
  for (int part = 0; part < parts; ++part) total += sums[int64_t{part} * taps * channels + i];
  float* const to = dw + int64_t{i % channels} * taps + i / channels;
  *to = add ? *to + total : total;
}

// body(k) with a constant k: size of square filters with specialised code, else 0.
template <class Body>
void dispatch_side(const Shape& w, const Body& body) {
  const int64_t side = w[1] == w[2] ? w[1] : 0;
  if (side == 3) return body(std::integral_constant<int, 3>());
  if (side == 5) return body(std::integral_constant<int, 5>());
  if (side == 7) return body(std::integral_constant<int, 7>());
  body(std::integral_constant<int, 0>());
}

LaunchShape launch_shape(const Context& context, const Deal& deal, int64_t pixels, int64_t taps, int lanes) {
  const unsigned columns = blocks_for(context, pixels * deal.per_block, deal.pixels * deal.per_block);
  return {{columns, static_cast<unsigned>(deal.blocks)},
          kThreads,
          static_cast<size_t>(taps * deal.per_block * lanes) * sizeof(float)};
}

}  // namespace

bool is_depthwise(const Shape& x, const Shape& w, const Conv2dOptions& options) {
  return options.groups > 1 && options.groups == x[3] && options.groups == w[0] && w[1] * w[2] <= 49;
}

void depthwise(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
               const Tensor& y) {
  const float* const b = bias ? bias.data<float>() : nullptr;
  dispatch_lanes(
      "conv2d", x.dtype(), x.dim(3), {x.raw(), y.raw()}, [&]<class T, int n>(T, std::integral_constant<int, n>) {
        dispatch_side(w.shape(), [&]<int k>(std::integral_constant<int, k>) {
          const Deal deal(x.dim(3), n);
          launch(context, forward_kernel<T, n, k>,
                 launch_shape(context, deal, y.count() / y.dim(3), w.dim(1) * w.dim(2), n),
                 Geometry(x, y, w.dim(1), w.dim(2), options), deal, x.data<T>(), w.data<T>(), b, y.data<T>());
        });
      });
}

void depthwise_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options,
                     const Tensor& dx, bool add) {
  const int stride = options.stride.h == options.stride.w ? options.stride.h : 0;
  dispatch_lanes(
      "conv2d_dgrad", dx.dtype(), dx.dim(3), {dx.raw(), dy.raw()},
      [&]<class T, int n>(T, std::integral_constant<int, n>) {
        dispatch_side(w.shape(), [&]<int k>(std::integral_constant<int, k>) {
          auto kernel = dgrad_kernel<T, n, k, 0>;
          if (stride == 1) kernel = dgrad_kernel<T, n, k, 1>;
          if (stride == 2) kernel = dgrad_kernel<T, n, k, 2>;
          const Deal deal(dx.dim(3), n);
          launch(context, kernel, launch_shape(context, deal, dx.count() / dx.dim(3), w.dim(1) * w.dim(2), n),
                 Geometry(dx, dy, w.dim(1), w.dim(2), options), deal, dy.data<T>(), w.data<T>(), add, dx.data<T>());
        });
      });
}

void depthwise_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                     const Tensor& dw, bool add) {
  constexpr int64_t kLeastPixels = 16;  // per thread and partition
  const int64_t taps = dw.dim(1) * dw.dim(2), pixels = dy.count() / dy.dim(3);
  dispatch_lanes(
      "conv2d_wgrad", x.dtype(), x.dim(3), {x.raw(), dy.raw()}, [&]<class T, int n>(T, std::integral_constant<int, n>) {
        dispatch_side(dw.shape(), [&]<int k>(std::integral_constant<int, k>) {
          constexpr int at_once = k > 0 ? k : 1;
          const Deal deal(x.dim(3), n);
          const unsigned parts =
              blocks_for(context, pixels / kLeastPixels * deal.per_block * deal.blocks * taps / at_once, kThreads, 1);
          const Tensor sums = context.empty({parts, taps, x.dim(3)});
          launch(context, wgrad_kernel<T, n, at_once>,
                 {{parts, static_cast<unsigned>(deal.blocks), static_cast<unsigned>(taps / at_once)},
                  kThreads,
                  kThreads * n * sizeof(float)},
                 Geometry(x, dy, dw.dim(1), dw.dim(2), options), deal, x.data<T>(), dy.data<T>(), sums.data<float>());
          launch(context, add_parts_kernel, {static_cast<unsigned>((dw.count() + kThreads - 1) / kThreads), kThreads},
                 sums.data<float>(), static_cast<int>(parts), static_cast<int>(taps), static_cast<int>(x.dim(3)), add,
                 dw.data<float>());
        });
      });
}

}  // namespace dtrain::cuda
