// CUDA arm of the pooling ops. A thread computes one pack of channels of one pixel of the output, or in the backward
// pass of the gradient, which it gathers: no atomics, and sums in the order of the CPU arm.
#include <cmath>

#include "libdtrain/core/divisor.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/pool.h"
#include "libdtrain/ops/pool_math.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256;

// The packs of whole images [n, h, w, c], fewer than 2^31 of them, from image `first` on.
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

// Launches kernel(packs, arguments...) for all packs of n lanes of `image`: once, but for a tensor of 2^31 packs.
template <int n, class... Parameters, class... Arguments>
void launch_over(const Context& context, const Tensor& image, void (*kernel)(Packs, Parameters...),
                 const Arguments&... arguments) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (image.count() == 0) return;
  const int64_t per_pixel = image.dim(3) / n, per_image = image.dim(1) * image.dim(2) * per_pixel;
  DT_CHECK(per_image <= kMost, "pool: images of ", image.shape(), " are too large for the GPU");
  for (int64_t first = 0, images = 0; first < image.dim(0); first += images) {
    images = std::min(kMost / per_image, image.dim(0) - first);
    const Packs packs{Divisor(per_pixel), Divisor(image.dim(2)), Divisor(image.dim(1)), first, images * per_image};
    launch(context, kernel, {blocks_for(context, packs.count, kThreads), kThreads}, packs, arguments...);
  }
}

// body(place) for this thread's share of the packs.
template <class Body>
__device__ void for_each_pack(const Packs& packs, Body&& body) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs.count; i += threads) body(packs.at(i));
}

template <class T, int n>
__device__ Pack<T, n> filled(float value) {
  Pack<T, n> pack;
#pragma unroll
  for (int i = 0; i < n; ++i) pack.lane[i] = from_float<T>(value);
  return pack;
}

template <class T, int n>
__device__ Pack<T, n> packed(const float (&values)[n]) {
  Pack<T, n> pack;
#pragma unroll
  for (int i = 0; i < n; ++i) pack.lane[i] = from_float<T>(values[i]);
  return pack;
}

// Square windows of k cells a side, all of them loaded at once; k = 0: of any size, one load after the other.
template <int k, int n, class T, class Take>
__device__ void for_each_cell(const PoolGeometry& g, const T* x, const Packs::Place& at, float padding, Take&& take) {
  if constexpr (k > 0) {
    const auto top = static_cast<int>(g.rows.start(at.h)), left = static_cast<int>(g.columns.start(at.w));
    const auto height = static_cast<int>(g.rows.in), width = static_cast<int>(g.columns.in);
    const int64_t corner = g.x_pixel(at.image, top, left) + n * at.pack;
    Pack<T, n> window[k * k];
#pragma unroll
    for (int cell = 0; cell < k * k; ++cell) {
      const int r = cell / k, s = cell % k;
      const bool inside = 0 <= top + r && top + r < height && 0 <= left + s && left + s < width;
      window[cell] = inside ? load<T, n>(x + (corner + (r * width + s) * g.c)) : filled<T, n>(padding);
    }
#pragma unroll
    for (int cell = 0; cell < k * k; ++cell) take(cell, window[cell]);
  } else {
    const PoolRange hs = g.rows.cells(at.h), ws = g.columns.cells(at.w);
    for (int64_t h = hs.begin; h < hs.end; ++h)
      for (int64_t w = ws.begin; w < ws.end; ++w)
        take(static_cast<int>(g.cell(at.h, at.w, h, w)), load<T, n>(x + g.x_pixel(at.image, h, w) + n * at.pack));
  }
}

// Nothing is smaller than the padding's -infinity: the first cell inside the image leads from the start.
template <class T, int n, int k>
__global__ void __launch_bounds__(kThreads)
    max_pool_kernel(Packs packs, PoolGeometry g, const T* x, T* y, uint8_t* argmax) {
  for_each_pack(packs, [&](const Packs::Place& at) {
    const int64_t out = g.y_pixel(at.image, at.h, at.w) + n * at.pack;
    const int64_t first = g.cell(at.h, at.w, g.rows.cells(at.h).begin, g.columns.cells(at.w).begin);
    float best[n];
    int winner[n];
#pragma unroll
    for (int i = 0; i < n; ++i) best[i] = -INFINITY, winner[i] = static_cast<int>(first);
    for_each_cell<k, n>(g, x, at, -INFINITY, [&](int cell, const Pack<T, n>& values) {
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
    for_each_cell<k, n>(g, x, at, 0, [&](int, const Pack<T, n>& values) {
#pragma unroll
      for (int i = 0; i < n; ++i) sum[i] += to_float(values.lane[i]);
    });
    const float factor = reciprocal_cells(g, count_padding, at.h, at.w);
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] *= factor;
    store(y + g.y_pixel(at.image, at.h, at.w) + n * at.pack, packed<T>(sum));
  });
}

// What the windows over a pixel give to it. `Source` knows how to load what window (p, q) has and how to add it.
// Windows of k cells a side, s apart: at most ceil(k / s) a side, all loaded at once; k = 0: any, one after the other.
template <int k, int s, int n, class Source>
__device__ void gather_windows(PoolGeometry& g, const Source& source, const Packs::Place& at, float (&sum)[n]) {
  if constexpr (k > 0) {
    g.rows.kernel = g.columns.kernel = k;
    g.rows.stride = g.columns.stride = s;
  }
  const PoolRange ps = g.rows.windows(at.h), qs = g.columns.windows(at.w);
  if constexpr (k > 0) {
    constexpr int kSide = (k + s - 1) / s;
    typename Source::Window windows[kSide * kSide] = {};
    auto p = [&](int i) { return ps.begin + i / kSide; };
    auto q = [&](int i) { return qs.begin + i % kSide; };
#pragma unroll
    for (int i = 0; i < kSide * kSide; ++i)
      if (p(i) < ps.end && q(i) < qs.end) windows[i] = source.load_window(g, at, p(i), q(i));
#pragma unroll
    for (int i = 0; i < kSide * kSide; ++i)
      if (p(i) < ps.end && q(i) < qs.end) source.add(g, at, p(i), q(i), windows[i], sum);
  } else {
    for (int64_t p = ps.begin; p < ps.end; ++p)
      for (int64_t q = qs.begin; q < qs.end; ++q) source.add(g, at, p, q, source.load_window(g, at, p, q), sum);
  }
}

// The gradient goes to the winner.
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
  __device__ void add(const PoolGeometry& g, const Packs::Place& at, int64_t p, int64_t q, const Window& window,
                      float (&sum)[n]) const {
    const auto cell = static_cast<int>(g.cell(p, q, at.h, at.w));
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] += window.winner.lane[i] == cell ? to_float(window.dy.lane[i]) : 0.0f;
  }
};

// The gradient goes to all cells alike.
template <class T, int n>
struct AverageSource {
  const T* dy;
  bool count_padding;

  using Window = Pack<T, n>;
  __device__ Window load_window(const PoolGeometry& g, const Packs::Place& at, int64_t p, int64_t q) const {
    return load<T, n>(dy + g.y_pixel(at.image, p, q) + n * at.pack);
  }
  __device__ void add(const PoolGeometry& g, const Packs::Place&, int64_t p, int64_t q, const Window& window,
                      float (&sum)[n]) const {
    const float factor = reciprocal_cells(g, count_padding, p, q);
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] += factor * to_float(window.lane[i]);
  }
};

template <class T, int n, int k, int s, class Source>
__global__ void __launch_bounds__(kThreads)
    pool_grad_kernel(Packs packs, PoolGeometry g, Source source, bool add, T* dx) {
  for_each_pack(packs, [&](const Packs::Place& at) {
    T* const to = dx + g.x_pixel(at.image, at.h, at.w) + n * at.pack;
    float sum[n] = {};
    if (add) {
      const Pack<T, n> old = load<T, n>(to);
#pragma unroll
      for (int i = 0; i < n; ++i) sum[i] = to_float(old.lane[i]);
    }
    gather_windows<k, s>(g, source, at, sum);
    store(to, packed<T>(sum));
  });
}

// One thread per pack of the mean, in the order of the pixels, several of them in flight.
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
      for (int u = 0; u < kInFlight; ++u)
        values[u] = first + u < pixels ? load<T, n>(from + (first + u) * channels) : filled<T, n>(0);
#pragma unroll
      for (int u = 0; u < kInFlight; ++u)
#pragma unroll
        for (int i = 0; i < n; ++i) sum[i] += to_float(values[u].lane[i]);
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
    const Pack<T, n> old = add ? load<T, n>(to) : filled<T, n>(0);
    float sum[n];
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] = to_float(old.lane[i]) + factor * to_float(mean.lane[i]);
    store(to, packed<T>(sum));
  });
}

// body(T(), lanes): all of a 16-byte access, or one where the channels or an address do not allow it.
template <class Body>
void dispatch_lanes(const char* what, DType dtype, int64_t channels, std::initializer_list<const void*> addresses,
                    Body&& body) {
  dispatch_floating(dtype, what, [&]<class T>(T type) {
    const bool whole = channels % kLanes<T> == 0 &&
                       std::ranges::all_of(addresses, [](const void* p) { return aligned(p, sizeof(Pack<T>)); });
    if (whole)
      body(type, std::integral_constant<int, kLanes<T>>());
    else
      body(type, std::integral_constant<int, 1>());
  });
}

bool square(const PoolOptions& o, int kernel) { return o.kernel.h == kernel && o.kernel.w == kernel; }

template <class T, int n, class Source>
void pool_grad(Context& context, const PoolGeometry& g, const Source& source, const PoolOptions& options,
               const Tensor& dx, bool add) {
  const bool by_two = options.stride.h == 2 && options.stride.w == 2;
  auto kernel = pool_grad_kernel<T, n, 0, 0, Source>;
  if (by_two && square(options, 3)) kernel = pool_grad_kernel<T, n, 3, 2, Source>;
  if (by_two && square(options, 2)) kernel = pool_grad_kernel<T, n, 2, 2, Source>;
  launch_over<n>(context, dx, kernel, g, source, add, dx.data<T>());
}

}  // namespace

void max_pool(Context& context, const Tensor& x, const PoolOptions& options, const Tensor& y, const Tensor& argmax) {
  uint8_t* const winners = argmax ? argmax.data<uint8_t>() : nullptr;
  dispatch_lanes("max_pool", x.dtype(), x.dim(3), {x.raw(), y.raw(), winners},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   auto kernel = max_pool_kernel<T, n, 0>;
                   if (square(options, 3)) kernel = max_pool_kernel<T, n, 3>;
                   if (square(options, 2)) kernel = max_pool_kernel<T, n, 2>;
                   launch_over<n>(context, y, kernel, PoolGeometry(x, y, options), x.data<T>(), y.data<T>(), winners);
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
                   if (square(options, 3)) kernel = average_pool_kernel<T, n, 3>;
                   if (square(options, 2)) kernel = average_pool_kernel<T, n, 2>;
                   launch_over<n>(context, y, kernel, PoolGeometry(x, y, options), options.count_padding, x.data<T>(),
                                  y.data<T>());
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
                   launch_over<n>(context, y.view({x.dim(0), 1, 1, channels}), global_average_pool_kernel<T, n>, pixels,
                                  channels, x.data<T>(), y.data<T>());
                 });
}

void global_average_pool_grad(Context& context, const Tensor& dy, const Tensor& dx, bool add) {
  const int64_t pixels = dx.dim(1) * dx.dim(2), channels = dx.dim(3);
  dispatch_lanes("global_average_pool_grad", dx.dtype(), channels, {dy.raw(), dx.raw()},
                 [&]<class T, int n>(T, std::integral_constant<int, n>) {
                   launch_over<n>(context, dx, global_average_pool_grad_kernel<T, n>, pixels, dx.dim(2), channels,
                                  dy.data<T>(), add, dx.data<T>());
                 });
}

}  // namespace dtrain::cuda
