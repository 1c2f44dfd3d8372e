// CUDA kernels of pooling. One thread per pack of channels of an output pixel; backward gathers per input pixel: no
// atomics, same order of additions as on the CPU.
#include <cmath>

#include "dtrain/ops/pool.h"
#include "libdtrain/core/divisor.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/pointwise_kernels.h"
#include "libdtrain/ops/pool_kernels.h"
#include "libdtrain/ops/pool_math.h"

namespace dtrain::cuda {
namespace {

// Packs of whole images [n, h, w, c] from image `first` on, fewer than 2^31.
struct Packs {
  Divisor per_pixel, columns, rows;
  int64_t first, count;

  struct Place {
    int64_t image, h, w;
    int64_t pack;  // within the pixel
  };
  __device__ Place at(int64_t i) const {
    auto rest = static_cast<uint32_t>(i);
    const uint32_t pack = per_pixel.split(rest), w = columns.split(rest), h = rows.split(rest);
    return {first + rest, h, w, pack};
  }
};

// Launches kernel(packs, arguments...) over all packs of n lanes of `images` [n, h, w, c]; several launches from 2^31
// packs on.
template <int n, class... Parameters, class... Arguments>
void launch_over(const Context& context, const Shape& images, void (*kernel)(Packs, Parameters...),
                 const Arguments&... arguments) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (images.count() == 0) return;
  const int64_t per_pixel = images[3] / n, per_image = images[1] * images[2] * per_pixel;
  DT_CHECK(per_image <= kMost, "pool: images of ", images, " are too large for the GPU");
  for (int64_t first = 0, count = 0; first < images[0]; first += count) {
    count = std::min(kMost / per_image, images[0] - first);
    const Packs packs{Divisor(per_pixel), Divisor(images[2]), Divisor(images[1]), first, count * per_image};
    launch(context, kernel, {blocks_for(context, packs.count, kThreads), kThreads}, packs, arguments...);
  }
}

// body(place) for this thread's packs.
template <class Body>
__device__ void for_each_pack(const Packs& packs, Body&& body) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
#pragma unroll 1
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs.count; i += threads) body(packs.at(i));
}

// take(cell, inside, values) for the cells of window (h, w) of `at`, row-major. For square windows of k cells all loads
// are in flight at once; cells in the padding (`inside` false) load the nearest cell of the window inside the image. k
// = 0: windows of any size, one load at a time.
template <int k, int n, class T, class Take>
__device__ void for_each_cell(const PoolGeometry& g, const T* x, const Packs::Place& at, Take&& take) {
  if constexpr (k > 0) {
    const int64_t top = g.rows.start(at.h), left = g.columns.start(at.w);
    const T* const image = x + g.x_pixel(at.image, 0, 0) + n * at.pack;
    const T* row[k];
    int64_t column[k];
#pragma unroll
    for (int i = 0; i < k; ++i) {
      row[i] = image + clamped(top + i, g.rows.in) * (g.columns.in * g.c);
      column[i] = clamped(left + i, g.columns.in) * g.c;
    }
    Pack<T, n> window[k * k];
#pragma unroll
    for (int i = 0; i < k * k; ++i) window[i] = load<T, n>(row[i / k] + column[i % k]);
#pragma unroll
    for (int i = 0; i < k * k; ++i) {
      const int64_t h = top + i / k, w = left + i % k;
      const int r = clamped(h, g.rows.in) - static_cast<int>(top),
                s = clamped(w, g.columns.in) - static_cast<int>(left);
      take(r * k + s, 0 <= h && h < g.rows.in && 0 <= w && w < g.columns.in, window[i]);
    }
  } else {
    const PoolRange hs = g.rows.cells(at.h), ws = g.columns.cells(at.w);
    for (int64_t h = hs.begin; h < hs.end; ++h)
      for (int64_t w = ws.begin; w < ws.end; ++w)
        take(static_cast<int>(g.cell(at.h, at.w, h, w)), true, load<T, n>(x + g.x_pixel(at.image, h, w) + n * at.pack));
  }
}

template <class T, int n, int k>
__global__ void __launch_bounds__(kThreads)
    max_pool_kernel(Packs packs, PoolGeometry g, const T* x, T* y, uint8_t* argmax) {
  for_each_pack(packs, [&](const Packs::Place& at) {
    const int64_t out = g.y_pixel(at.image, at.h, at.w) + n * at.pack;
    const int64_t first = g.cell(at.h, at.w, g.rows.cells(at.h).begin, g.columns.cells(at.w).begin);
    // -infinity: the first cell inside the image becomes the maximum.
    float best[n];
    int winner[n];
#pragma unroll
    for (int i = 0; i < n; ++i) best[i] = -INFINITY, winner[i] = static_cast<int>(first);
    // Padding cells repeat an inner cell, which does not exceed itself.
    for_each_cell<k, n>(g, x, at, [&](int cell, bool, const Pack<T, n>& values) {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const float value = to_float(values.lane[i]);
        const bool wins = wins_window(value, best[i]);
        best[i] = wins ? value : best[i];
        winner[i] = wins ? cell : winner[i];
      }
    });
    store(y + out, packed<T>(best));
    if (argmax == nullptr) return;
    Pack<uint8_t, n> winners;
#pragma unroll
    for (int i = 0; i < n; ++i) winners.lane[i] = static_cast<uint8_t>(winner[i]);
    store(argmax + out, winners);
  });
}

template <class T, int n, int k>
__global__ void __launch_bounds__(kThreads)
    average_pool_kernel(Packs packs, PoolGeometry g, bool count_padding, const T* x, T* y) {
  for_each_pack(packs, [&](const Packs::Place& at) {
    float sum[n] = {};
    for_each_cell<k, n>(g, x, at, [&](int, bool inside, const Pack<T, n>& values) {
#pragma unroll
      for (int i = 0; i < n; ++i)
        if (inside) sum[i] += to_float(values.lane[i]);
    });
    const float factor = reciprocal_cells(g, count_padding, at.h, at.w);
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] *= factor;
    store(y + g.y_pixel(at.image, at.h, at.w) + n * at.pack, packed<T>(sum));
  });
}

// Max pooling: the gradient goes to the argmax.
template <class T, int n>
struct MaxSource {
  const T* dy;
  const uint8_t* argmax;

  struct Window {
    Pack<T, n> dy;
    Pack<uint8_t, n> winner;
  };
  __device__ Window load_window(const PoolGeometry& g, const Packs::Place& at, int64_t p, int64_t q) const {
    const int64_t out = g.y_pixel(at.image, p, q) + n * at.pack;
    return {load<T, n>(dy + out), load<uint8_t, n>(argmax + out)};
  }
  // sum += gradient of the window's cell `cell`.
  __device__ static void add(const Window& window, int cell, float (&sum)[n]) {
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (window.winner.lane[i] == cell) sum[i] += to_float(window.dy.lane[i]);
  }
};

// Average pooling: the gradient goes to all cells.
template <class T, int n>
struct AverageSource {
  const T* dy;
  bool count_padding;

  struct Window {
    Pack<T, n> dy;
    float factor;
  };
  __device__ Window load_window(const PoolGeometry& g, const Packs::Place& at, int64_t p, int64_t q) const {
    return {load<T, n>(dy + g.y_pixel(at.image, p, q) + n * at.pack), reciprocal_cells(g, count_padding, p, q)};
  }
  __device__ static void add(const Window& window, int, float (&sum)[n]) {
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] += window.factor * to_float(window.dy.lane[i]);
  }
};

// Stores or accumulates sums.
template <class T, int n>
__device__ void start_sums(const T* to, bool add, float (&sum)[n]) {
  Pack<T, n> old{};
  if (add) old = load<T, n>(to);
#pragma unroll
  for (int i = 0; i < n; ++i) sum[i] = add ? to_float(old.lane[i]) : 0.0f;
}

// Windows of any size: each pixel gathers from the windows that cover it.
template <class T, int n, class Source>
__global__ void __launch_bounds__(kThreads)
    pool_grad_kernel(Packs packs, PoolGeometry g, Source source, bool add, T* dx) {
  for_each_pack(packs, [&](const Packs::Place& at) {
    T* const to = dx + g.x_pixel(at.image, at.h, at.w) + n * at.pack;
    const PoolRange ps = g.rows.windows(at.h), qs = g.columns.windows(at.w);
    float sum[n];
    start_sums(to, add, sum);
#pragma unroll 1
    for (int64_t p = ps.begin; p < ps.end; ++p)
#pragma unroll 1
      for (int64_t q = qs.begin; q < qs.end; ++q)
        source.add(source.load_window(g, at, p, q), static_cast<int>(g.cell(p, q, at.h, at.w)), sum);
    store(to, packed<T>(sum));
  });
}

// k x k windows of stride s: the s x s pixels from the start of window (h, w) of `at` gather from a few common windows
// (this one and those above and to the left), with compile-time cell indices.
template <class T, int n, int k, int s, class Source>
__global__ void __launch_bounds__(kThreads)
    pool_grad_block_kernel(Packs packs, PoolGeometry g, Source source, bool add, T* dx) {
  constexpr int kSide = (k + s - 1) / s;
  g.rows.kernel = g.columns.kernel = k;
  g.rows.stride = g.columns.stride = s;
  for_each_pack(packs, [&](const Packs::Place& at) {
    typename Source::Window windows[kSide][kSide];
    bool exists[kSide][kSide];
#pragma unroll
    for (int i = 0; i < kSide * kSide; ++i) {
      const int64_t p = at.h - i / kSide, q = at.w - i % kSide;
      exists[i / kSide][i % kSide] = 0 <= p && p < g.rows.out && 0 <= q && q < g.columns.out;
      windows[i / kSide][i % kSide] = source.load_window(g, at, clamped(p, g.rows.out), clamped(q, g.columns.out));
    }
#pragma unroll
    for (int pixel = 0; pixel < s * s; ++pixel) {
      const int a = pixel / s, b = pixel % s;
      const int64_t h = g.rows.start(at.h) + a, w = g.columns.start(at.w) + b;
      if (h < 0 || h >= g.rows.in || w < 0 || w >= g.columns.in) continue;
      T* const to = dx + g.x_pixel(at.image, h, w) + n * at.pack;
      float sum[n];
      start_sums(to, add, sum);
#pragma unroll
      for (int i = kSide * kSide - 1; i >= 0; --i) {
        const int r = a + s * (i / kSide), c = b + s * (i % kSide);
        if (r < k && c < k && exists[i / kSide][i % kSide]) source.add(windows[i / kSide][i % kSide], r * k + c, sum);
      }
      store(to, packed<T>(sum));
    }
  });
}

// Global average: one thread per pack, in pixel order, several loads in flight.
template <class T, int n>
__global__ void __launch_bounds__(kThreads)
    global_average_pool_kernel(Packs packs, int64_t pixels, int64_t channels, const T* x, T* y) {
  constexpr int kInFlight = 8;
  for_each_pack(packs, [&](const Packs::Place& at) {
    const T* from = x + at.image * pixels * channels + n * at.pack;
    float sum[n] = {};
    for (int64_t first = 0; first < pixels; first += kInFlight) {
      Pack<T, n> values[kInFlight];
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) values[u] = load<T, n>(from + min(first + u, pixels - 1) * channels);
#pragma unroll
      for (int u = 0; u < kInFlight; ++u)
#pragma unroll
        for (int i = 0; i < n; ++i)
          if (first + u < pixels) sum[i] += to_float(values[u].lane[i]);
    }
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] /= static_cast<float>(pixels);
    store(y + at.image * channels + n * at.pack, packed<T>(sum));
  });
}

template <class T, int n>
__global__ void __launch_bounds__(kThreads)
    global_average_pool_grad_kernel(Packs packs, int64_t pixels, int64_t columns, int64_t channels, const T* dy,
                                    bool add, T* dx) {
  const float factor = 1.0f / static_cast<float>(pixels);
  for_each_pack(packs, [&](const Packs::Place& at) {
    const Pack<T, n> mean = load<T, n>(dy + at.image * channels + n * at.pack);
    T* const to = dx + (at.image * pixels + at.h * columns + at.w) * channels + n * at.pack;
    float sum[n];
    start_sums(to, add, sum);
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] += factor * to_float(mean.lane[i]);
    store(to, packed<T>(sum));
  });
}

bool square(const PoolOptions& o, int kernel) { return o.kernel.h == kernel && o.kernel.w == kernel; }

template <class T, int n, class Source>
void pool_grad(Context& context, const PoolGeometry& g, const Source& source, const PoolOptions& options,
               const Tensor& dx, bool add) {
  T* const to = dx.data<T>();
  if constexpr (n > 1)
    if (options.stride.h == 2 && options.stride.w == 2 && (square(options, 2) || square(options, 3))) {
      // 2 x 2 blocks of pixels that cover the image, starting at the first window.
      const Shape blocks{g.n, (g.rows.in + g.rows.padding + 1) / 2, (g.columns.in + g.columns.padding + 1) / 2, g.c};
      auto kernel =
          square(options, 2) ? pool_grad_block_kernel<T, n, 2, 2, Source> : pool_grad_block_kernel<T, n, 3, 2, Source>;
      return launch_over<n>(context, blocks, kernel, g, source, add, to);
    }
  launch_over<n>(context, dx.shape(), pool_grad_kernel<T, n, Source>, g, source, add, to);
}

}  // namespace

void max_pool(Context& context, const Tensor& x, const PoolOptions& options, const Tensor& y, const Tensor& argmax) {
  uint8_t* const winners = argmax ? argmax.data<uint8_t>() : nullptr;
  dispatch_lanes("max_pool", x.dtype(), x.dim(3), {x.raw(), y.raw(), winners},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   auto kernel = max_pool_kernel<T, n, 0>;
                   if constexpr (n > 1) {
                     if (square(options, 3)) kernel = max_pool_kernel<T, n, 3>;
                     if (square(options, 2)) kernel = max_pool_kernel<T, n, 2>;
                   }
                   launch_over<n>(context, y.shape(), kernel, PoolGeometry(x, y, options), x.data<T>(), y.data<T>(),
                                  winners);
                 });
}

void max_pool_grad(Context& context, const Tensor& dy, const Tensor& argmax, const PoolOptions& options,
                   const Tensor& dx, bool add) {
  dispatch_lanes("max_pool_grad", dx.dtype(), dx.dim(3), {dy.raw(), argmax.raw(), dx.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   const MaxSource<T, n> source{dy.data<T>(), argmax.data<uint8_t>()};
                   pool_grad<T, n>(context, PoolGeometry(dx, dy, options), source, options, dx, add);
                 });
}

void average_pool(Context& context, const Tensor& x, const PoolOptions& options, const Tensor& y) {
  dispatch_lanes("average_pool", x.dtype(), x.dim(3), {x.raw(), y.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   auto kernel = average_pool_kernel<T, n, 0>;
                   if constexpr (n > 1) {
                     if (square(options, 3)) kernel = average_pool_kernel<T, n, 3>;
                     if (square(options, 2)) kernel = average_pool_kernel<T, n, 2>;
                   }
                   launch_over<n>(context, y.shape(), kernel, PoolGeometry(x, y, options), options.count_padding,
                                  x.data<T>(), y.data<T>());
                 });
}

void average_pool_grad(Context& context, const Tensor& dy, const PoolOptions& options, const Tensor& dx, bool add) {
  dispatch_lanes("average_pool_grad", dx.dtype(), dx.dim(3), {dy.raw(), dx.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   const AverageSource<T, n> source{dy.data<T>(), options.count_padding};
                   pool_grad<T, n>(context, PoolGeometry(dx, dy, options), source, options, dx, add);
                 });
}

void global_average_pool(Context& context, const Tensor& x, const Tensor& y) {
  const int64_t pixels = x.dim(1) * x.dim(2), channels = x.dim(3);
  dispatch_lanes("global_average_pool", x.dtype(), channels, {x.raw(), y.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   launch_over<n>(context, {x.dim(0), 1, 1, channels}, global_average_pool_kernel<T, n>, pixels,
                                  channels, x.data<T>(), y.data<T>());
                 });
}

void global_average_pool_grad(Context& context, const Tensor& dy, const Tensor& dx, bool add) {
  const int64_t pixels = dx.dim(1) * dx.dim(2), channels = dx.dim(3);
  dispatch_lanes("global_average_pool_grad", dx.dtype(), channels, {dy.raw(), dx.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   launch_over<n>(context, dx.shape(), global_average_pool_grad_kernel<T, n>, pixels, dx.dim(2),
                                  channels, dy.data<T>(), add, dx.data<T>());
                 });
}

}  // namespace dtrain::cuda
