#include "dtrain/ops/pool.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/max_pool_parts.h"
#include "libdtrain/ops/pool_kernels.h"
#include "libdtrain/ops/pool_math.h"

namespace dtrain {
namespace {

int64_t pooled(const char* axis, int64_t in, int kernel, int stride, int before, int after) {
  DT_CHECK(kernel > 0 && stride > 0, "pool: ", axis, " kernel ", kernel, " and stride ", stride, " must be positive");
  DT_CHECK(before >= 0 && after >= 0 && before < kernel && after < kernel, "pool: ", axis, " padding ", before, " and ",
           after, " must be smaller than the kernel, ", kernel);
  DT_CHECK(in > 0 && in + before + after >= kernel, "pool: a kernel of ", axis, " ", kernel,
           " does not fit into a padded image of ", in + before + after);
  return (in + before + after - kernel) / stride + 1;
}

}  // namespace

Shape pool_shape(const Shape& x, const PoolOptions& o) {
  DT_CHECK(x.rank() == 4, "pool: expected [n, h, w, c], found ", x);
  return {x[0], pooled("height", x[1], o.kernel.h, o.stride.h, o.padding.top, o.padding.bottom),
          pooled("width", x[2], o.kernel.w, o.stride.w, o.padding.left, o.padding.right), x[3]};
}

Var max_pool(Tape& tape, const Var& x, const PoolOptions& options) {
  DT_CHECK(options.kernel.h * options.kernel.w <= 255, "max_pool: a window of ", options.kernel.h, " x ",
           options.kernel.w, " cells; at most 255");
  Context& context = tape.context();
  const Tensor y = context.empty(pool_shape(x.shape(), options), x.value.dtype());
  const Tensor argmax = tape.wants_grad({&x}) ? context.empty(y.shape(), DType::u8) : Tensor();
  DT_DISPATCH(context, max_pool)(x.value, options, y, argmax);
  tape.op_observer().note(options);
  return tape.record("max_pool", y, {&x}, [x = x.without_value(), argmax, options](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), max_pool_grad)(dy, argmax, options, target->dx, target->add);
  });
}

Var average_pool(Tape& tape, const Var& x, const PoolOptions& options) {
  Context& context = tape.context();
  const Tensor y = context.empty(pool_shape(x.shape(), options), x.value.dtype());
  DT_DISPATCH(context, average_pool)(x.value, options, y);
  tape.op_observer().note(options);
  return tape.record("average_pool", y, {&x}, [x = x.without_value(), options](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), average_pool_grad)(dy, options, target->dx, target->add);
  });
}

Var global_average_pool(Tape& tape, const Var& x) {
  DT_CHECK(x.shape().rank() == 4 && x.value.dim(1) * x.value.dim(2) > 0,
           "global_average_pool: expected [n, h, w, c] with pixels, found ", x.shape());
  Context& context = tape.context();
  const Tensor y = context.empty({x.value.dim(0), x.value.dim(3)}, x.value.dtype());
  DT_DISPATCH(context, global_average_pool)(x.value, y);
  return tape.record("global_average_pool", y, {&x}, [x = x.without_value()](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), global_average_pool_grad)(dy, target->dx, target->add);
  });
}

namespace cpu {
namespace {

// body(image, p, q) for each output pixel.
template <class Body>
void for_each_window(const PoolGeometry& g, Body&& body) {
  parallel_ranges(
      g.n * g.rows.out,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t q = 0; q < g.columns.out; ++q) body(row / g.rows.out, row % g.rows.out, q);
      },
      g.columns.out * g.c * g.cells());
}

// body(image, h, w) for each input pixel.
template <class Body>
void for_each_pixel(const PoolGeometry& g, Body&& body) {
  parallel_ranges(
      g.n * g.rows.in,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t w = 0; w < g.columns.in; ++w) body(row / g.rows.in, row % g.rows.in, w);
      },
      g.columns.in * g.c * 4);
}

constexpr int kMostCells = 255;  // per window: indices are u8

// Window (p, q); row `first` of its image is at `rows`.
template <class T>
void max_of_window(const MaxPoolLoops<T>& loops, const PoolGeometry& g, const T* rows, int64_t first, int64_t p,
                   int64_t q, T* best, uint8_t* winner) {
  const PoolRange hs = g.rows.cells(p), ws = g.columns.cells(q);
  const T* pixels[kMostCells];
  uint8_t cells[kMostCells];
  int count = 0;
  for (int64_t h = hs.begin; h < hs.end; ++h)
    for (int64_t w = ws.begin; w < ws.end; ++w, ++count) {
      pixels[count] = rows + ((h - first) * g.columns.in + w) * g.c;
      cells[count] = static_cast<uint8_t>(g.cell(p, q, h, w));
    }
  loops.window({pixels, cells, count, g.c, best, winner});
}

// Gradient of pixel (h, w) from the windows that cover it, rows `ps` by columns `qs`.
template <class T>
void gather_won(const MaxPoolLoops<T>& loops, const PoolGeometry& g, const T* dy, const uint8_t* winners, int64_t image,
                int64_t h, int64_t w, const PoolRange& ps, const PoolRange& qs, T* dx, bool add) {
  const T* gradients[kMostCells];
  const uint8_t* won[kMostCells];
  uint8_t cells[kMostCells];
  int count = 0;
  for (int64_t p = ps.begin; p < ps.end; ++p)
    for (int64_t q = qs.begin; q < qs.end; ++q, ++count) {
      const int64_t at = g.y_pixel(image, p, q);
      gradients[count] = dy + at, won[count] = winners + at;
      cells[count] = static_cast<uint8_t>(g.cell(p, q, h, w));
    }
  loops.gradient({gradients, won, cells, count, g.c, dx, add});
}

constexpr int64_t kBytes = 32;
typedef uint8_t Bytes __attribute__((vector_size(kBytes)));

// Maximum of a window, for a vector of channels.
template <class V>
void max_of_channels(const PoolGeometry& g, const uint8_t* image, const PoolRange& hs, const PoolRange& ws,
                     uint8_t* to) {
  V best = {};
  for (int64_t h = hs.begin; h < hs.end; ++h)
    for (int64_t w = ws.begin; w < ws.end; ++w) {
      V value;
      std::memcpy(&value, image + (h * g.columns.in + w) * g.c, sizeof value);
      best = value > best ? value : best;
    }
  std::memcpy(to, &best, sizeof best);
}

void max_pool_bytes(const PoolGeometry& g, const uint8_t* x, uint8_t* y) {
  for_each_window(g, [&](int64_t image, int64_t p, int64_t q) {
    const PoolRange hs = g.rows.cells(p), ws = g.columns.cells(q);
    const uint8_t* const from = x + g.x_pixel(image, 0, 0);
    uint8_t* const to = y + g.y_pixel(image, p, q);
    int64_t c = 0;
    for (; c + kBytes <= g.c; c += kBytes) max_of_channels<Bytes>(g, from + c, hs, ws, to + c);
    for (; c < g.c; ++c) max_of_channels<uint8_t>(g, from + c, hs, ws, to + c);
  });
}

}  // namespace

template <class T>
void max_pool_rows(const Context& context, const PoolGeometry& g, const T* rows, int64_t first, int64_t image,
                   int64_t begin, int64_t end, T* y, uint8_t* winners) {
  const MaxPoolLoops<T>& loops = context.kernels().max_pool.of<T>();
  for (int64_t p = begin; p < end; ++p)
    for (int64_t q = 0; q < g.columns.out; ++q) {
      const int64_t out = g.y_pixel(image, p, q);
      max_of_window(loops, g, rows, first, p, q, y + out, winners ? winners + out : nullptr);
    }
}

std::vector<PoolRange> covering_columns(const PoolGeometry& g) {
  std::vector<PoolRange> covering;
  for (int64_t w = 0; w < g.columns.in; ++w) covering.push_back(g.columns.windows(w));
  return covering;
}

template <class T>
void unpool_pixels(const Context& context, const PoolGeometry& g, const std::vector<PoolRange>& covering, const T* dy,
                   const uint8_t* winners, int64_t begin, int64_t end, T* dx, bool add) {
  const MaxPoolLoops<T>& loops = context.kernels().max_pool.of<T>();
  while (begin < end) {  // rows of images
    const int64_t row = begin / g.columns.in, image = row / g.rows.in, h = row % g.rows.in;
    const PoolRange ps = g.rows.windows(h);
    for (int64_t w = begin - row * g.columns.in; w < g.columns.in && begin < end; ++w, ++begin, dx += g.c)
      gather_won(loops, g, dy, winners, image, h, w, ps, covering[static_cast<size_t>(w)], dx, add);
  }
}

template void max_pool_rows(const Context&, const PoolGeometry&, const float*, int64_t, int64_t, int64_t, int64_t,
                            float*, uint8_t*);
template void max_pool_rows(const Context&, const PoolGeometry&, const Bf16*, int64_t, int64_t, int64_t, int64_t, Bf16*,
                            uint8_t*);
template void unpool_pixels(const Context&, const PoolGeometry&, const std::vector<PoolRange>&, const float*,
                            const uint8_t*, int64_t, int64_t, float*, bool);
template void unpool_pixels(const Context&, const PoolGeometry&, const std::vector<PoolRange>&, const Bf16*,
                            const uint8_t*, int64_t, int64_t, Bf16*, bool);

void max_pool(Context& context, const Tensor& x, const PoolOptions& options, const Tensor& y, const Tensor& argmax) {
  const PoolGeometry g(x, y, options);
  if (x.dtype() == DType::u8) return max_pool_bytes(g, x.data<uint8_t>(), y.data<uint8_t>());
  uint8_t* winners = argmax ? argmax.data<uint8_t>() : nullptr;
  with_elements(x.dtype(), [&]<class T>(T) {
    parallel_ranges(
        g.n * g.rows.out,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const int64_t image = row / g.rows.out, p = row % g.rows.out;
            max_pool_rows(context, g, x.data<T>() + g.x_pixel(image, 0, 0), 0, image, p, p + 1, y.data<T>(), winners);
          }
        },
        g.columns.out * g.c * g.cells());
  });
}

void max_pool_grad(Context& context, const Tensor& dy, const Tensor& argmax, const PoolOptions& options,
                   const Tensor& dx, bool add) {
  const PoolGeometry g(dx, dy, options);
  const std::vector<PoolRange> covering = covering_columns(g);
  with_elements(dy.dtype(), [&]<class T>(T) {
    parallel_ranges(
        g.n * g.rows.in * g.columns.in,
        [&](int64_t begin, int64_t end) {
          unpool_pixels(context, g, covering, dy.data<T>(), argmax.data<uint8_t>(), begin, end,
                        dx.data<T>() + begin * g.c, add);
        },
        g.c * 4);
  });
}

void average_pool(Context&, const Tensor& x, const PoolOptions& options, const Tensor& y) {
  const PoolGeometry g(x, y, options);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for_each_window(g, [&](int64_t image, int64_t p, int64_t q) {
    float* sum = to + g.y_pixel(image, p, q);
    std::fill_n(sum, g.c, 0.0f);
    const PoolRange hs = g.rows.cells(p), ws = g.columns.cells(q);
    for (int64_t h = hs.begin; h < hs.end; ++h)
      for (int64_t w = ws.begin; w < ws.end; ++w) {
        const float* pixel = from + g.x_pixel(image, h, w);
        for (int64_t c = 0; c < g.c; ++c) sum[c] += pixel[c];
      }
    const float factor = reciprocal_cells(g, options.count_padding, p, q);
    for (int64_t c = 0; c < g.c; ++c) sum[c] *= factor;
  });
}

void average_pool_grad(Context&, const Tensor& dy, const PoolOptions& options, const Tensor& dx, bool add) {
  const PoolGeometry g(dx, dy, options);
  const float* from = dy.data<float>();
  float* const to = dx.data<float>();
  for_each_pixel(g, [&](int64_t image, int64_t h, int64_t w) {
    float* const sum = to + g.x_pixel(image, h, w);
    if (!add) std::fill_n(sum, g.c, 0.0f);
    const PoolRange ps = g.rows.windows(h), qs = g.columns.windows(w);
    for (int64_t p = ps.begin; p < ps.end; ++p)
      for (int64_t q = qs.begin; q < qs.end; ++q) {
        const float factor = reciprocal_cells(g, options.count_padding, p, q);
        const float* const window = from + g.y_pixel(image, p, q);
        for (int64_t c = 0; c < g.c; ++c) sum[c] += factor * window[c];
      }
  });
}

void global_average_pool(Context&, const Tensor& x, const Tensor& y) {
  const int64_t pixels = x.dim(1) * x.dim(2), channels = x.dim(3);
  with_elements(x.dtype(), [&]<class T>(T) {
    const T* from = x.data<T>();
    T* to = y.data<T>();
    parallel_ranges(
        x.dim(0),
        [=](int64_t begin, int64_t end) {
          std::vector<float> sums(static_cast<size_t>(channels));
          float* const sum = sums.data();
          for (int64_t n = begin; n < end; ++n) {
            std::fill_n(sum, channels, 0.0f);
            for (int64_t i = 0; i < pixels; ++i)
              for (int64_t c = 0; c < channels; ++c) sum[c] += from[(n * pixels + i) * channels + c];
            for (int64_t c = 0; c < channels; ++c)
              to[n * channels + c] = to_element<T>(sum[c] / static_cast<float>(pixels));
          }
        },
        pixels * channels);
  });
}

void global_average_pool_grad(Context&, const Tensor& dy, const Tensor& dx, bool add) {
  const int64_t pixels = dx.dim(1) * dx.dim(2), channels = dx.dim(3);
  const float factor = 1.0f / static_cast<float>(pixels);
  with_elements(dy.dtype(), [&]<class T>(T) {
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    parallel_ranges(
        dx.dim(0) * pixels,
        [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const T* row = from + i / pixels * channels;
            T* pixel = to + i * channels;
            for (int64_t c = 0; c < channels; ++c)
              pixel[c] = to_element<T>((add ? static_cast<float>(pixel[c]) : 0.0f) + factor * row[c]);
          }
        },
        channels);
  });
}

}  // namespace cpu
}  // namespace dtrain
