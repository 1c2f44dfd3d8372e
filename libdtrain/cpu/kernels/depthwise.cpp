// Two loops, each unrolled for every number of taps.
#include "libdtrain/cpu/kernels/depthwise.h"

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Channels [begin, end), a multiple of a vector; the first `done` of a vector are already finished and keep their
// results.
struct Channels {
  int64_t begin, end, done = 0;
};
// For pixels from `pixel` on, and for all.
template <class T>
using SumTaps = void (*)(const DepthwiseRun<T>&, int64_t pixel, const Channels&);
template <class T>
using AddProducts = void (*)(const DepthwiseProducts<T>&, const Channels&);

// Stores `value`, or adds it to `to`; kPart: leaves the first `done` elements, which a store would not change.
template <bool kPart, class V, class T>
[[gnu::always_inline]] inline void store_or_add(T* to, V value, bool add, int64_t done) {
  if (!kPart || !add) return store<V>(to, add ? load<V>(to) + value : value);
  constexpr int64_t kElements = sizeof(V) / sizeof(float);
  T elements[kElements];
  store<V>(elements, load<V>(to) + value);
  for (int64_t i = done; i < kElements; ++i) to[i] = elements[i];
}

template <bool kValue>
struct Flag {
  static constexpr bool value = kValue;
};

// Calls use(Channels, Flag) for the whole vectors of at least `lanes` channels, and with the flag set for the rest: a
// vector that ends with the last channel and overlaps the one before it.
template <int lanes, class Use>
[[gnu::always_inline]] inline void for_vectors(int64_t channels, const Use& use) {
  const int64_t end = channels / lanes * lanes, rest = channels - end;
  use(Channels{0, end}, Flag<false>());
  if (rest) use(Channels{channels - lanes, channels, lanes - rest}, Flag<true>());
}

// Q pixels, A taps apart, with rows of S taps: each vector of x is loaded once for all pixels that read it. The sums, a
// row of weights and the vector fit the sixteen registers of AVX2.
template <class T, int lanes, int Q, int S, int A, bool kPart>
void sum_rows(const DepthwiseRun<T>& run, int64_t pixel, const Channels& channels) {
  using V = typename VectorOf<lanes>::Type;
  const int64_t x_step = run.x_tap_step, w_step = run.w_tap_step, x_at = pixel * run.x_pixel_step;
  const typename DepthwiseRun<T>::Row* const rows_end = run.rows + run.row_count;
  for (int64_t c = channels.begin; c + lanes <= channels.end; c += lanes) {
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
    for (int q = 0; q < Q; ++q, to += run.y_pixel_step) store_or_add<kPart>(to, sum[q], run.add, channels.done);
  }
}

// One pixel with any number of taps.
template <class T, int lanes, bool kPart = false>
void sum_any(const DepthwiseRun<T>& run, int64_t pixel, const Channels& channels) {
  using V = typename VectorOf<lanes>::Type;
  for (int64_t c = channels.begin; c + lanes <= channels.end; c += lanes) {
    V sum = run.bias ? load<V>(run.bias + c) : V{};
    for (int64_t r = 0; r < run.row_count; ++r) {
      const T* x = run.rows[r].x + pixel * run.x_pixel_step + c;
      const float* w = run.rows[r].w + c;
      for (int64_t s = 0; s < run.taps; ++s, x += run.x_tap_step, w += run.w_tap_step) sum += load<V>(w) * load<V>(x);
    }
    store_or_add<kPart>(run.y + pixel * run.y_pixel_step + c, sum, run.add, channels.done);
  }
}

template <class T, int lanes, int Q, int A, bool kPart>
constexpr SumTaps<T> kSumRows[] = {nullptr,
                                   sum_rows<T, lanes, Q, 1, A, kPart>,
                                   sum_rows<T, lanes, Q, 2, A, kPart>,
                                   sum_rows<T, lanes, Q, 3, A, kPart>,
                                   sum_rows<T, lanes, Q, 4, A, kPart>,
                                   sum_rows<T, lanes, Q, 5, A, kPart>,
                                   sum_rows<T, lanes, Q, 6, A, kPart>,
                                   sum_rows<T, lanes, Q, 7, A, kPart>};
constexpr int kMostTaps = 7;

// Six pixels at a time, as registers allow, then four, two and one: every call loads the weights again.
template <class T, int lanes, int A, bool kPart>
void sum_all_pixels(const DepthwiseRun<T>& run, const Channels& channels) {
  int64_t pixel = 0;
  for (; pixel + 6 <= run.pixels; pixel += 6) kSumRows<T, lanes, 6, A, kPart>[run.taps](run, pixel, channels);
  for (; pixel + 4 <= run.pixels; pixel += 4) kSumRows<T, lanes, 4, A, kPart>[run.taps](run, pixel, channels);
  for (; pixel + 2 <= run.pixels; pixel += 2) kSumRows<T, lanes, 2, A, kPart>[run.taps](run, pixel, channels);
  for (; pixel < run.pixels; ++pixel) kSumRows<T, lanes, 1, 1, kPart>[run.taps](run, pixel, channels);
}

template <class Call>
bool few_taps(const Call& call, int64_t apart) {
  return call.taps >= 1 && call.taps <= kMostTaps && (call.pixels == 1 || call.x_pixel_step == apart * call.x_tap_step);
}

template <class T, int lanes, bool kPart>
void sum_channels(const DepthwiseRun<T>& run, const Channels& channels) {
  if (few_taps(run, 1))
    sum_all_pixels<T, lanes, 1, kPart>(run, channels);
  else if (few_taps(run, 2))
    sum_all_pixels<T, lanes, 2, kPart>(run, channels);
  else
    for (int64_t pixel = 0; pixel < run.pixels; ++pixel) sum_any<T, lanes, kPart>(run, pixel, channels);
}

// Fewer channels than the widest vector holds go in narrower vectors, in the loop for any number of taps: unrolled ones
// would double the code size.
template <class T, int lanes>
void sum_few_channels(const DepthwiseRun<T>& run, int64_t begin) {
  const int64_t end = begin + (run.channels - begin) / lanes * lanes;
  for (int64_t pixel = 0; pixel < run.pixels; ++pixel) sum_any<T, lanes>(run, pixel, {begin, end});
  if constexpr (lanes > 1)
    if (end < run.channels) sum_few_channels<T, (lanes > 4 ? lanes / 2 : 1)>(run, end);
}

template <class T>
void sum_taps(const DepthwiseRun<T>& run) {
  if (run.channels < kLanes)
    sum_few_channels<T, kLanes / 2>(run, 0);
  else
    for_vectors<kLanes>(run.channels, [&](const Channels& channels, auto part) {
      sum_channels<T, kLanes, decltype(part)::value>(run, channels);
    });
}

// Adds Q pixels, A taps apart, to the sums of R rows of S taps.
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
template <class T, int lanes, int R, int S, int A, bool kPart>
void add_rows(const DepthwiseProducts<T>& p, int64_t first, const Channels& channels) {
  using V = typename VectorOf<lanes>::Type;
  constexpr int kPixels = 4;
  for (int64_t c = channels.begin; c + lanes <= channels.end; c += lanes) {
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
      for (int s = 0; s < S; ++s, to += p.sums_tap_step) store_or_add<kPart>(to, sum[r][s], true, channels.done);
    }
  }
}

// Any number of taps, one after the other.
template <class T, int lanes, bool kPart = false>
void add_any(const DepthwiseProducts<T>& p, const Channels& channels) {
  using V = typename VectorOf<lanes>::Type;
  for (int64_t c = channels.begin; c + lanes <= channels.end; c += lanes)
    for (int64_t r = 0; r < p.row_count; ++r)
      for (int64_t s = 0; s < p.taps; ++s) {
        const T *dy = p.dy + c, *x = p.rows[r].x + s * p.x_tap_step + c;
        V sum = {};
        for (int64_t i = 0; i < p.pixels; ++i, dy += p.dy_pixel_step, x += p.x_pixel_step)
          sum += load<V>(dy) * load<V>(x);
        store_or_add<kPart>(p.rows[r].sums + s * p.sums_tap_step + c, sum, true, channels.done);
      }
}

// Three rows at a time of few taps, which breaks the dependency chain of additions.
template <class T, int lanes, int S, int A, bool kPart>
void add_all_rows(const DepthwiseProducts<T>& p, const Channels& channels) {
  int64_t row = 0;
  if constexpr (S <= 3)
    for (; row + 3 <= p.row_count; row += 3) add_rows<T, lanes, 3, S, A, kPart>(p, row, channels);
  for (; row < p.row_count; ++row) add_rows<T, lanes, 1, S, A, kPart>(p, row, channels);
}

template <class T, int lanes, int A, bool kPart>
constexpr AddProducts<T> kAddRows[] = {nullptr,
                                       add_all_rows<T, lanes, 1, A, kPart>,
                                       add_all_rows<T, lanes, 2, A, kPart>,
                                       add_all_rows<T, lanes, 3, A, kPart>,
                                       add_all_rows<T, lanes, 4, A, kPart>,
                                       add_all_rows<T, lanes, 5, A, kPart>,
                                       add_all_rows<T, lanes, 6, A, kPart>,
                                       add_all_rows<T, lanes, 7, A, kPart>};

template <class T, int lanes>
void add_few_channels(const DepthwiseProducts<T>& p, int64_t begin) {
  const int64_t end = begin + (p.channels - begin) / lanes * lanes;
  add_any<T, lanes>(p, {begin, end});
  if constexpr (lanes > 1)
    if (end < p.channels) add_few_channels<T, (lanes > 4 ? lanes / 2 : 1)>(p, end);
}

template <class T>
void add_products(const DepthwiseProducts<T>& p) {
  if (p.channels < kLanes) return add_few_channels<T, kLanes / 2>(p, 0);
  for_vectors<kLanes>(p.channels, [&](const Channels& channels, auto part) {
    constexpr bool kPart = decltype(part)::value;
    if (few_taps(p, 1))
      kAddRows<T, kLanes, 1, kPart>[p.taps](p, channels);
    else if (few_taps(p, 2))
      kAddRows<T, kLanes, 2, kPart>[p.taps](p, channels);
    else
      add_any<T, kLanes, kPart>(p, channels);
  });
}

template <class T>
DepthwiseLoops<T> loops() {
  return {sum_taps<T>, add_products<T>};
}

}  // namespace

void add_depthwise(Kernels& kernels) { kernels.depthwise = {loops<float>(), loops<Bf16>()}; }

}  // namespace dtrain::cpu::DT_ISA
