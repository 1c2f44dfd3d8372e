// Longer than usual: it is the whole source of two loops, each in a form for every number of taps.
#include "libdtrain/cpu/kernels/depthwise.h"

#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/vectors.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Of pixels from `pixel` on, and of all, channels [begin, end).
template <class T>
using SumTaps = void (*)(const DepthwiseRun<T>&, int64_t pixel, int64_t begin, int64_t end);
template <class T>
using AddProducts = void (*)(const DepthwiseProducts<T>&, int64_t begin, int64_t end);

// Q pixels that are A taps apart, with rows of S taps: each vector of x is loaded once for all pixels that read it. The
// sums, a row of weights and the vector fit the sixteen registers of AVX2.
template <class T, int lanes, int Q, int S, int A>
void sum_rows(const DepthwiseRun<T>& run, int64_t pixel, int64_t begin, int64_t end) {
  using V = typename VectorOf<lanes>::Type;
  const int64_t x_step = run.x_tap_step, w_step = run.w_tap_step, x_at = pixel * run.x_pixel_step;
  const typename DepthwiseRun<T>::Row* const rows_end = run.rows + run.row_count;
  for (int64_t c = begin; c + lanes <= end; c += lanes) {
    const V first = run.bias ? load<V>(run.bias + c) : V{};
    V sum[Q];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) sum[q] = first;
    for (const typename DepthwiseRun<T>::Row* row = run.rows; row != rows_end; ++row) {
      const T* x = row->x + x_at + c;
      const float* w = row->w + c;
      V weight[S];
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s, w += w_step) weight[s] = load<V>(w);
#pragma GCC unroll 32
      for (int i = 0; i < (Q - 1) * A + S; ++i, x += x_step) {
        const V value = load<V>(x);
#pragma GCC unroll 8
        for (int q = 0; q < Q; ++q)
          if (i - q * A >= 0 && i - q * A < S) sum[q] += weight[i - q * A] * value;
      }
    }
#pragma GCC unroll 2
    for (int r = 1; r <= A; ++r) {
      const T* next = rows_end[r <= run.row_count ? -r : -1].x + x_at + c + run.ahead;
#pragma GCC unroll 16
      for (int i = 0; i < Q * A; ++i, next += x_step) __builtin_prefetch(next, 0, 2);
    }
    T* to = run.y + pixel * run.y_pixel_step + c;
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q, to += run.y_pixel_step) store<V>(to, run.add ? load<V>(to) + sum[q] : sum[q]);
  }
}

// One pixel with any taps.
template <class T, int lanes>
void sum_any(const DepthwiseRun<T>& run, int64_t pixel, int64_t begin, int64_t end) {
  using V = typename VectorOf<lanes>::Type;
  for (int64_t c = begin; c + lanes <= end; c += lanes) {
    V sum = run.bias ? load<V>(run.bias + c) : V{};
    for (int64_t r = 0; r < run.row_count; ++r) {
      const T* x = run.rows[r].x + pixel * run.x_pixel_step + c;
      const float* w = run.rows[r].w + c;
      for (int64_t s = 0; s < run.taps; ++s, x += run.x_tap_step, w += run.w_tap_step) sum += load<V>(w) * load<V>(x);
    }
    T* const to = run.y + pixel * run.y_pixel_step + c;
    store<V>(to, run.add ? load<V>(to) + sum : sum);
  }
}

template <class T, int lanes, int Q, int A>
constexpr SumTaps<T> kSumRows[] = {nullptr,
                                   sum_rows<T, lanes, Q, 1, A>,
                                   sum_rows<T, lanes, Q, 2, A>,
                                   sum_rows<T, lanes, Q, 3, A>,
                                   sum_rows<T, lanes, Q, 4, A>,
                                   sum_rows<T, lanes, Q, 5, A>,
                                   sum_rows<T, lanes, Q, 6, A>,
                                   sum_rows<T, lanes, Q, 7, A>};
constexpr int kMostTaps = 7;

// As many pixels at a time as registers allow, and the rest at once: every call loads the weights anew.
template <class T, int lanes, int A>
void sum_all_pixels(const DepthwiseRun<T>& run, int64_t begin, int64_t end) {
  constexpr int kMostPixels = 6;
  constexpr const SumTaps<T>* kKernels[] = {nullptr,
                                            kSumRows<T, lanes, 1, 1>,
                                            kSumRows<T, lanes, 2, A>,
                                            kSumRows<T, lanes, 3, A>,
                                            kSumRows<T, lanes, 4, A>,
                                            kSumRows<T, lanes, 5, A>,
                                            kSumRows<T, lanes, 6, A>};
  for (int64_t pixel = 0; pixel < run.pixels; pixel += kMostPixels) {
    const int64_t left = run.pixels - pixel;
    kKernels[left < kMostPixels ? left : kMostPixels][run.taps](run, pixel, begin, end);
  }
}

template <class Call>
bool few_taps(const Call& call, int64_t apart) {
  return call.taps >= 1 && call.taps <= kMostTaps && (call.pixels == 1 || call.x_pixel_step == apart * call.x_tap_step);
}

// Channels [begin, end), which fill vectors.
template <class T, int lanes>
void sum_channels(const DepthwiseRun<T>& run, int64_t begin, int64_t end) {
  if (few_taps(run, 1))
    sum_all_pixels<T, lanes, 1>(run, begin, end);
  else if (few_taps(run, 2))
    sum_all_pixels<T, lanes, 2>(run, begin, end);
  else
    for (int64_t pixel = 0; pixel < run.pixels; ++pixel) sum_any<T, lanes>(run, pixel, begin, end);
}

// Channels from `begin` on. What does not fill a vector is left to narrower ones; where that takes more than one of
// them and sums may be written twice, a whole vector that ends with the last channel takes their place.
template <class T, int lanes>
void sum_taps_from(const DepthwiseRun<T>& run, int64_t begin) {
  const int64_t end = begin + (run.channels - begin) / lanes * lanes;
  if constexpr (lanes == 1) {
    for (int64_t pixel = 0; pixel < run.pixels; ++pixel) sum_any<T, 1>(run, pixel, begin, end);
  } else {
    sum_channels<T, lanes>(run, begin, end);
    const int64_t rest = run.channels - end;
    if (rest == 0) return;
    const bool one_vector = rest >= 4 && (rest & (rest - 1)) == 0;
    if (!one_vector && !run.add && run.channels >= lanes)
      sum_channels<T, lanes>(run, run.channels - lanes, run.channels);
    else
      sum_taps_from<T, (lanes > 4 ? lanes / 2 : 1)>(run, end);
  }
}
template <class T, int lanes>
void sum_taps(const DepthwiseRun<T>& run) {
  sum_taps_from<T, lanes>(run, 0);
}

// Q pixels that are A taps apart of R rows of S taps, added to their sums.
template <class V, int Q, int R, int S, int A, class T>
inline void add_pixels(const DepthwiseProducts<T>& p, const T* dy, const T* const (&x)[R], V (&sum)[R][S]) {
  V gradient[Q];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) gradient[q] = load<V>(dy + q * p.dy_pixel_step);
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) __builtin_prefetch(dy + q * p.dy_pixel_step + p.dy_ahead, 0, 2);
#pragma GCC unroll 2
  for (int r = R - 1; r >= 0 && r >= R - A; --r)
#pragma GCC unroll 16
    for (int q = 0; q < Q * A; ++q) __builtin_prefetch(x[r] + q * p.x_tap_step + p.x_ahead, 0, 2);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int i = 0; i < (Q - 1) * A + S; ++i) {
      const V value = load<V>(x[r] + i * p.x_tap_step);
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q)
        if (i - q * A >= 0 && i - q * A < S) sum[r][i - q * A] += gradient[q] * value;
    }
}

// R rows of S taps from row `first` on.
template <class T, int lanes, int R, int S, int A>
void add_rows(const DepthwiseProducts<T>& p, int64_t first, int64_t begin, int64_t end) {
  using V = typename VectorOf<lanes>::Type;
  constexpr int kPixels = 4;
  for (int64_t c = begin; c + lanes <= end; c += lanes) {
    V sum[R][S] = {};
    const T *dy = p.dy + c, *x[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) x[r] = p.rows[first + r].x + c;
    const auto advance = [&](int64_t pixels) {
      dy += pixels * p.dy_pixel_step;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) x[r] += pixels * p.x_pixel_step;
    };
    int64_t pixel = 0;
    for (; pixel + kPixels <= p.pixels; pixel += kPixels, advance(kPixels))
      add_pixels<V, kPixels, R, S, A>(p, dy, x, sum);
    for (; pixel < p.pixels; ++pixel, advance(1)) add_pixels<V, 1, R, S, A>(p, dy, x, sum);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      float* to = p.rows[first + r].sums + c;
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s, to += p.sums_tap_step) store<V>(to, load<V>(to) + sum[r][s]);
    }
  }
}

// Any taps, one after the other.
template <class T, int lanes>
void add_any(const DepthwiseProducts<T>& p, int64_t begin, int64_t end) {
  using V = typename VectorOf<lanes>::Type;
  for (int64_t c = begin; c + lanes <= end; c += lanes)
    for (int64_t r = 0; r < p.row_count; ++r)
      for (int64_t s = 0; s < p.taps; ++s) {
        const T *dy = p.dy + c, *x = p.rows[r].x + s * p.x_tap_step + c;
        V sum = {};
        for (int64_t i = 0; i < p.pixels; ++i, dy += p.dy_pixel_step, x += p.x_pixel_step)
          sum += load<V>(dy) * load<V>(x);
        float* const to = p.rows[r].sums + s * p.sums_tap_step + c;
        store<V>(to, load<V>(to) + sum);
      }
}

// Three rows at a time of few taps, so that an addition need not wait for the one before it.
template <class T, int lanes, int S, int A>
void add_all_rows(const DepthwiseProducts<T>& p, int64_t begin, int64_t end) {
  int64_t row = 0;
  if constexpr (S <= 3)
    for (; row + 3 <= p.row_count; row += 3) add_rows<T, lanes, 3, S, A>(p, row, begin, end);
  for (; row < p.row_count; ++row) add_rows<T, lanes, 1, S, A>(p, row, begin, end);
}

template <class T, int lanes, int A>
constexpr AddProducts<T> kAddRows[] = {nullptr,
                                       add_all_rows<T, lanes, 1, A>,
                                       add_all_rows<T, lanes, 2, A>,
                                       add_all_rows<T, lanes, 3, A>,
                                       add_all_rows<T, lanes, 4, A>,
                                       add_all_rows<T, lanes, 5, A>,
                                       add_all_rows<T, lanes, 6, A>,
                                       add_all_rows<T, lanes, 7, A>};

template <class T, int lanes>
void add_products_from(const DepthwiseProducts<T>& p, int64_t begin) {
  const int64_t end = begin + (p.channels - begin) / lanes * lanes;
  if constexpr (lanes == 1) {
    add_any<T, 1>(p, begin, end);
  } else {
    if (few_taps(p, 1))
      kAddRows<T, lanes, 1>[p.taps](p, begin, end);
    else if (few_taps(p, 2))
      kAddRows<T, lanes, 2>[p.taps](p, begin, end);
    else
      add_any<T, lanes>(p, begin, end);
    if (end < p.channels) add_products_from<T, (lanes > 4 ? lanes / 2 : 1)>(p, end);
  }
}
template <class T, int lanes>
void add_products(const DepthwiseProducts<T>& p) {
  add_products_from<T, lanes>(p, 0);
}

template <class T>
DepthwiseLoops<T> loops() {
  return {sum_taps<T, kLanes>, add_products<T, kLanes>};
}

}  // namespace

DepthwiseKernels depthwise_kernels() { return {loops<float>(), loops<Bf16>()}; }

}  // namespace dtrain::cpu::DT_ISA
