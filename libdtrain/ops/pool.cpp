#include "libdtrain/ops/pool.h"

#include <algorithm>

#include "libdtrain/core/dispatch.h"
#include "libdtrain/cpu/parallel.h"
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
  tape.op_watch().note(options);
  return tape.record("max_pool", y, {&x}, [x = x.without_value(), argmax, options](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), max_pool_grad)(dy, argmax, options, target->dx, target->add);
  });
}

Var average_pool(Tape& tape, const Var& x, const PoolOptions& options) {
  Context& context = tape.context();
  const Tensor y = context.empty(pool_shape(x.shape(), options), x.value.dtype());
  DT_DISPATCH(context, average_pool)(x.value, options, y);
  tape.op_watch().note(options);
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

// body(image, p, q) for every pixel of the pooled image
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

// For every pixel of the larger image, body(p, q, first element in dy, cell, sum[c]) adds what each window that covers
// it gives, in a fixed order; `cell` is the pixel's index within the window.
template <class Body>
void gather_windows(const PoolGeometry& g, const Tensor& dx, bool add, Body&& body) {
  float* const to = dx.data<float>();
  auto gather_row = [&](int64_t image, int64_t h) {
    const PoolRange ps = g.rows.windows(h);
    for (int64_t w = 0; w < g.columns.in; ++w) {
      const PoolRange qs = g.columns.windows(w);
      float* const sum = to + g.x_pixel(image, h, w);
      if (!add) std::fill_n(sum, g.c, 0.0f);
      for (int64_t p = ps.begin; p < ps.end; ++p)
        for (int64_t q = qs.begin; q < qs.end; ++q) body(p, q, g.y_pixel(image, p, q), g.cell(p, q, h, w), sum);
    }
  };
  parallel_ranges(
      g.n * g.rows.in,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) gather_row(row / g.rows.in, row % g.rows.in);
      },
      g.columns.in * g.c * 4);
}

// The largest of window (p, q) of one image per channel, and its cell unless `winner` is null.
void max_of_window(const PoolGeometry& g, const float* image, int64_t p, int64_t q, float* best, uint8_t* winner) {
  constexpr int64_t kBlock = 64;
  const PoolRange hs = g.rows.cells(p), ws = g.columns.cells(q);
  for (int64_t c0 = 0; c0 < g.c; c0 += kBlock) {
    const int64_t count = std::min(kBlock, g.c - c0);
    // As wide as the values, so that the comparison vectorises.
    int32_t cells[kBlock];
    float values[kBlock];
    bool first = true;
    for (int64_t h = hs.begin; h < hs.end; ++h)
      for (int64_t w = ws.begin; w < ws.end; ++w) {
        const float* x = image + (h * g.columns.in + w) * g.c + c0;
        const auto cell = static_cast<int32_t>(g.cell(p, q, h, w));
        for (int64_t c = 0; c < count; ++c) {
          const bool wins = first || wins_window(x[c], values[c]);
          values[c] = wins ? x[c] : values[c];
          cells[c] = wins ? cell : cells[c];
        }
        first = false;
      }
    std::copy_n(values, count, best + c0);
    if (winner) std::copy_n(cells, count, winner + c0);
  }
}

}  // namespace

void max_pool(Context&, const Tensor& x, const PoolOptions& options, const Tensor& y, const Tensor& argmax) {
  const PoolGeometry g(x, y, options);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  uint8_t* winners = argmax ? argmax.data<uint8_t>() : nullptr;
  for_each_window(g, [&](int64_t image, int64_t p, int64_t q) {
    const int64_t out = g.y_pixel(image, p, q);
    max_of_window(g, from + g.x_pixel(image, 0, 0), p, q, to + out, winners ? winners + out : nullptr);
  });
}

void max_pool_grad(Context&, const Tensor& dy, const Tensor& argmax, const PoolOptions& options, const Tensor& dx,
                   bool add) {
  const PoolGeometry g(dx, dy, options);
  const float* from = dy.data<float>();
  const uint8_t* winners = argmax.data<uint8_t>();
  gather_windows(g, dx, add, [&](int64_t, int64_t, int64_t out, int64_t cell, float* sum) {
    // As wide as the values and with nothing loaded on a condition, so that it vectorises.
    const auto own = static_cast<int32_t>(cell);
    const float* const grad = from + out;
    const uint8_t* const winner = winners + out;
    const int64_t channels = g.c;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      const float value = grad[c];
      sum[c] += int32_t{winner[c]} == own ? value : 0.0f;
    }
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
  gather_windows(g, dx, add, [&](int64_t p, int64_t q, int64_t out, int64_t, float* sum) {
    const float factor = reciprocal_cells(g, options.count_padding, p, q);
    for (int64_t c = 0; c < g.c; ++c) sum[c] += factor * from[out + c];
  });
}

void global_average_pool(Context&, const Tensor& x, const Tensor& y) {
  const int64_t pixels = x.dim(1) * x.dim(2), channels = x.dim(3);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  parallel_ranges(
      x.dim(0),
      [=](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          float* mean = to + n * channels;
          std::fill_n(mean, channels, 0.0f);
          for (int64_t i = 0; i < pixels; ++i)
            for (int64_t c = 0; c < channels; ++c) mean[c] += from[(n * pixels + i) * channels + c];
          for (int64_t c = 0; c < channels; ++c) mean[c] /= static_cast<float>(pixels);
        }
      },
      pixels * channels);
}

void global_average_pool_grad(Context&, const Tensor& dy, const Tensor& dx, bool add) {
  const int64_t pixels = dx.dim(1) * dx.dim(2), channels = dx.dim(3);
  const float factor = 1.0f / static_cast<float>(pixels);
  const float* from = dy.data<float>();
  float* to = dx.data<float>();
  parallel_ranges(
      dx.dim(0) * pixels,
      [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const float* row = from + i / pixels * channels;
          float* pixel = to + i * channels;
          for (int64_t c = 0; c < channels; ++c) pixel[c] = (add ? pixel[c] : 0.0f) + factor * row[c];
        }
      },
      channels);
}

}  // namespace cpu
}  // namespace dtrain
