#include "libdtrain/cpu/depthwise.h"

#include <algorithm>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/simd.h"

namespace dtrain::cpu {
namespace {

constexpr int kMostRows = 7;  // of taps

// ---- the way from one image to another, forward and back ----

// Along one axis, cell `out_start + out_step * i` of what is written is a sum over cells `in_step * i + offset` of what
// is read, one for each tap. The data gradient of a stride has such a relation for each remainder of the stride.
struct AxisTap {
  int64_t offset, weight;
};
struct Axis {
  int64_t out_start, out_step, count;  // count: of the cells that are written
  int64_t in_step, in;
  std::vector<AxisTap> taps;

  bool inside(const AxisTap& tap, int64_t i) const {
    const int64_t cell = in_step * i + tap.offset;
    return cell >= 0 && cell < in;
  }
};

Axis forward_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t padding) {
  Axis axis{0, 1, out, stride, in, {}};
  for (int64_t tap = 0; tap < kernel; ++tap) axis.taps.push_back({tap * dilation - padding, tap});
  return axis;
}

// Cells of dx with the remainder `start`: of `in` dx cells and `out` cells of dy.
Axis backward_axis(int64_t start, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                   int64_t padding) {
  Axis axis{start, stride, (in - start + stride - 1) / stride, 1, out, {}};
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const int64_t reach = start + padding - tap * dilation;
    if (reach % stride == 0) axis.taps.push_back({reach / stride, tap});
  }
  return axis;
}

// What one tap reads for the first pixel of a tile, and its weights, one for each channel.
struct Tap {
  const float *x, *w;
};

struct Tile {
  const Tap* taps;
  int64_t count;
  int64_t x_step, y_step, channels;
  const float* bias;
  float* y;
  bool add;
};

// Channels [c, c + N vectors) of Q pixels: y = or += bias + sum over taps of w * x.
template <class V, int Q, int N>
void sum_taps(const Tile& t, int64_t c) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  V sum[Q][N];
#pragma GCC unroll 16
  for (int i = 0; i < Q * N; ++i) sum[i / N][i % N] = t.bias ? load<V>(t.bias + c + i % N * kLanes) : V{};
  for (int64_t tap = 0; tap < t.count; ++tap) {
    const float* x = t.taps[tap].x + c;
    const float* const w = t.taps[tap].w + c;
    V weight[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) weight[v] = load<V>(w + v * kLanes);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q, x += t.x_step)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sum[q][v] += weight[v] * load<V>(x + v * kLanes);
  }
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      float* const to = t.y + q * t.y_step + c + v * kLanes;
      store<V>(to, t.add ? load<V>(to) + sum[q][v] : sum[q][v]);
    }
}

template <int Q>
void sum_taps_of_all_channels(const Tile& t) {
  int64_t c = 0;
  for (; c + 16 <= t.channels; c += 16) sum_taps<Float8, Q, 2>(t, c);
  for (; c + 8 <= t.channels; c += 8) sum_taps<Float8, Q, 1>(t, c);
  for (; c < t.channels; ++c) sum_taps<float, Q, 1>(t, c);
}

// Pixels that are summed together: twelve accumulators and two vectors of weights fit the registers of AVX2.
constexpr int kPixels = 6;

// The images of one convolution and the relation between their columns.
struct Sweep {
  const float *in, *weights, *bias;  // weights: [r * s][c]
  float* out;
  bool add;
  int64_t channels, in_width, out_width, kernel_width;
  Axis columns;
  int64_t first_whole, last_whole;  // of `columns`: in [first, last) all taps are inside

  Sweep(const float* from, const float* w, const float* b, float* to, bool adds, int64_t c, int64_t width,
        int64_t kernel, const Axis& axis)
      : in(from),
        weights(w),
        bias(b),
        out(to),
        add(adds),
        channels(c),
        in_width(axis.in),
        out_width(width),
        kernel_width(kernel),
        columns(axis),
        first_whole(0),
        last_whole(axis.count) {
    const auto whole = [&](int64_t i) {
      return std::ranges::all_of(axis.taps, [&](const AxisTap& tap) { return axis.inside(tap, i); });
    };
    while (first_whole < axis.count && !whole(first_whole)) ++first_whole;
    while (last_whole > first_whole && !whole(last_whole - 1)) --last_whole;
  }

  // The taps for pixels from i on of a row: those that are inside for all of them.
  int64_t find_taps(const Axis& rows, int64_t image, int64_t row, int64_t i, std::vector<Tap>& found) const {
    int64_t count = 0;
    for (const AxisTap& r : rows.taps) {
      if (!rows.inside(r, row)) continue;
      const int64_t h = rows.in_step * row + r.offset;
      for (const AxisTap& s : columns.taps)
        if (columns.inside(s, i))
          found[static_cast<size_t>(count++)] = {
              in + ((image * rows.in + h) * in_width + columns.in_step * i + s.offset) * channels,
              weights + (r.weight * kernel_width + s.weight) * channels};
    }
    return count;
  }

  // One row of one image. `out_row`: the first pixel of it.
  void run_row(const Axis& rows, int64_t image, int64_t row, float* out_row, std::vector<Tap>& taps) const {
    const int64_t step = columns.out_step * channels;
    for (int64_t i = 0, count = 0; i < columns.count; i += count) {
      const bool whole = i >= first_whole && i + kPixels <= last_whole;
      count = whole ? kPixels : 1;
      const Tile tile{taps.data(),
                      find_taps(rows, image, row, i, taps),
                      columns.in_step * channels,
                      step,
                      channels,
                      bias,
                      out_row + (columns.out_start + columns.out_step * i) * channels,
                      add};
      whole ? sum_taps_of_all_channels<kPixels>(tile) : sum_taps_of_all_channels<1>(tile);
    }
  }
};

// All rows of `images` images of `out_height` rows; row h is of axis h % rows.size().
void run_rows(const Context& context, const std::vector<Sweep>& sweeps, const std::vector<Axis>& rows, int64_t images,
              int64_t out_height) {
  const auto kinds = static_cast<int64_t>(rows.size());
  const Sweep& any = sweeps[0];
#pragma omp parallel num_threads(context.threads())
  {
    std::vector<Tap> taps(kMostRows * static_cast<size_t>(any.kernel_width));
#pragma omp for schedule(static)
    for (int64_t i = 0; i < images * out_height; ++i) {
      const int64_t image = i / out_height, h = i % out_height;
      for (const Sweep& sweep : sweeps)
        sweep.run_row(rows[static_cast<size_t>(h % kinds)], image, h / kinds,
                      any.out + i * any.out_width * any.channels, taps);
    }
  }
}

// [c][taps] to [taps][c]
void transpose_filters(const float* w, int64_t channels, int64_t taps, float* to) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t tap = 0; tap < taps; ++tap) to[tap * channels + c] = w[c * taps + tap];
}

// ---- the gradient of the filters ----

// Pixels of a row and channels whose products are summed at a time: what they read stays in the first-level cache.
constexpr int64_t kRun = 16, kBlock = 64;

// Some pixels of dy, and what the taps of one column of the filters read for the first of them.
struct Products {
  const float* dy;
  int64_t count;
  const float* x[kMostRows];
  float* sums[kMostRows];
  int64_t dy_step, x_step;
};

// sums[r] += the sum over the pixels of dy * x[r], channels [c, c + N vectors).
template <class V, int R, int N>
void add_products(const Products& p, int64_t c) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  V sum[R][N] = {};
  int64_t x_at = c;
  for (int64_t i = 0; i < p.count; ++i, x_at += p.x_step)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      const V dy = load<V>(p.dy + i * p.dy_step + c + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[r][v] += dy * load<V>(p.x[r] + x_at + v * kLanes);
    }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      float* const to = p.sums[r] + c + v * kLanes;
      store<V>(to, load<V>(to) + sum[r][v]);
    }
}

template <int R>
void add_products_of_channels(const Products& p, int64_t c, int64_t end) {
  constexpr int kVectors = R <= 3 ? 4 : 2;  // of accumulators, so that an addition need not wait for the one before
  for (; c + 8 * kVectors <= end; c += 8 * kVectors) add_products<Float8, R, kVectors>(p, c);
  for (; c + 8 <= end; c += 8) add_products<Float8, R, 1>(p, c);
  for (; c < end; ++c) add_products<float, R, 1>(p, c);
}

using AddProducts = void (*)(const Products&, int64_t, int64_t);
constexpr AddProducts kAddProducts[kMostRows + 1] = {nullptr,
                                                     add_products_of_channels<1>,
                                                     add_products_of_channels<2>,
                                                     add_products_of_channels<3>,
                                                     add_products_of_channels<4>,
                                                     add_products_of_channels<5>,
                                                     add_products_of_channels<6>,
                                                     add_products_of_channels<7>};

// Adds to sums [r * s][c] what row p of dy of an image gives. `range`: for each column of the filters the pixels of dy
// that read within the image.
struct FilterGradient {
  const ConvShape& o;
  const float *x, *dy;
  std::vector<std::pair<int64_t, int64_t>> range;

  FilterGradient(const ConvShape& shape, const float* images, const float* gradients)
      : o(shape), x(images), dy(gradients) {
    for (int64_t s = 0; s < o.s; ++s) {
      const auto column = [&](int64_t q) { return q * o.stride_w + s * o.dilation_w - o.pad_left; };
      int64_t begin = 0, end = o.q;
      while (begin < end && column(begin) < 0) ++begin;
      while (end > begin && column(end - 1) >= o.w) --end;
      range.emplace_back(begin, end);
    }
  }

  void add_row(int64_t image, int64_t p, float* sums) const {
    const float* rows[kMostRows];
    int64_t taps[kMostRows];
    int count = 0;
    for (int64_t r = 0; r < o.r; ++r) {
      const int64_t h = p * o.stride_h + r * o.dilation_h - o.pad_top;
      if (h < 0 || h >= o.h) continue;
      rows[count] = x + (image * o.h + h) * o.w * o.c;
      taps[count++] = r * o.s;
    }
    if (count == 0) return;
    const float* const dy_row = dy + (image * o.p + p) * o.q * o.c;
    for (int64_t first = 0; first < o.q; first += kRun)
      for (int64_t c = 0; c < o.c; c += kBlock)
        for (int64_t s = 0; s < o.s; ++s) {
          const auto [begin, end] = range[static_cast<size_t>(s)];
          const int64_t q = std::max(first, begin), stop = std::min(first + kRun, end);
          if (q >= stop) continue;
          Products products{dy_row + q * o.c, stop - q, {}, {}, o.c, o.stride_w * o.c};
          for (int i = 0; i < count; ++i) {
            products.x[i] = rows[i] + (q * o.stride_w + s * o.dilation_w - o.pad_left) * o.c;
            products.sums[i] = sums + (taps[i] + s) * o.c;
          }
          kAddProducts[count](products, c, std::min(c + kBlock, o.c));
        }
  }
};

}  // namespace

bool depthwise_supports(const ConvShape& o) {
  return o.groups > 1 && o.groups == o.c && o.groups == o.k && o.r <= kMostRows;
}

void depthwise_forward(Context& context, const ConvShape& o, const float* x, const float* w, const float* bias,
                       float* y) {
  const Scratch<float> weights(context, o.r * o.s * o.c);
  transpose_filters(w, o.c, o.r * o.s, weights.data());
  const Axis rows = forward_axis(o.h, o.p, o.r, o.stride_h, o.dilation_h, o.pad_top);
  const Axis columns = forward_axis(o.w, o.q, o.s, o.stride_w, o.dilation_w, o.pad_left);
  run_rows(context, {Sweep(x, weights.data(), bias, y, false, o.c, o.q, o.s, columns)}, {rows}, o.n, o.p);
}

void depthwise_dgrad(Context& context, const ConvShape& o, const float* dy, const float* w, float* dx, bool add) {
  const Scratch<float> weights(context, o.r * o.s * o.c);
  transpose_filters(w, o.c, o.r * o.s, weights.data());
  std::vector<Axis> rows;
  std::vector<Sweep> sweeps;
  for (int64_t top = 0; top < o.stride_h; ++top)
    rows.push_back(backward_axis(top, o.h, o.p, o.r, o.stride_h, o.dilation_h, o.pad_top));
  for (int64_t left = 0; left < std::min(o.stride_w, o.w); ++left)
    sweeps.emplace_back(dy, weights.data(), nullptr, dx, add, o.c, o.w, o.s,
                        backward_axis(left, o.w, o.q, o.s, o.stride_w, o.dilation_w, o.pad_left));
  run_rows(context, sweeps, rows, o.n, o.h);
}

void depthwise_wgrad(Context& context, const ConvShape& o, const float* x, const float* dy, float* dw, bool add) {
  const int64_t taps = o.r * o.s, count = taps * o.c;
  const Scratch<float> sums(context, context.threads() * count);
  const FilterGradient gradient(o, x, dy);
  parallel_parts(context, o.n * o.p, [&](int part, int64_t begin, int64_t end) {
    float* const own = sums.data() + part * count;
    std::fill_n(own, count, 0.0f);
    for (int64_t i = begin; i < end; ++i) gradient.add_row(i / o.p, i % o.p, own);
  });
  for (int64_t c = 0; c < o.c; ++c)
    for (int64_t tap = 0; tap < taps; ++tap) {
      double sum = 0;
      for (int part = 0; part < context.threads(); ++part) sum += sums.data()[part * count + tap * o.c + c];
      float& to = dw[c * taps + tap];
      to = (add ? to : 0.0f) + static_cast<float>(sum);
    }
}

}  // namespace dtrain::cpu
