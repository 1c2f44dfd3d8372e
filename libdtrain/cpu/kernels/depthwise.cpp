// Direct depthwise convolutions, unrolled for each number of taps.
#include "libdtrain/cpu/kernels/depthwise.h"

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/specialise.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Channels [begin, end), whole vectors; the first `done` lanes of a vector are already finished.
struct Channels {
  int64_t begin, end, done = 0;
};

// The mask of the lanes of V from `first` on.
template <class V>
[[gnu::always_inline]] inline auto lanes_from(int64_t first) {
  constexpr int32_t kIndices[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return load_unaligned<typename Lanes<V>::Ints>(kIndices) >= static_cast<int32_t>(first);
}

// Stores `value`, or adds it to `to` in the lanes of the mask. Lanes that are already finished are stored once more.
template <class V, class Mask, class T>
[[gnu::always_inline]] inline void store_or_add(T* to, V value, bool add, Mask unfinished) {
  if (!add) return store(to, value);
  const V before = load<V>(to);
  store(to, unfinished ? before + value : before);
}

// Calls use(Constant<lanes>(), Channels) for the vectors of fewer channels than the widest vector holds.
template <int lanes, class Use>
void for_narrow_vectors(int64_t begin, int64_t channels, const Use& use) {
  const int64_t end = begin + (channels - begin) / lanes * lanes;
  use(Constant<lanes>(), Channels{begin, end});
  if constexpr (lanes > 1)
    if (end < channels) for_narrow_vectors<(lanes > 4 ? lanes / 2 : 1)>(end, channels, use);
}

// Calls use(Constant<lanes>(), Channels) for all channels. The last of several vectors overlaps the one before it.
template <class Use>
void for_vectors(int64_t channels, const Use& use) {
  if (channels < kLanes) return for_narrow_vectors<kLanes / 2>(0, channels, use);
  const int64_t end = channels / kLanes * kLanes, rest = channels - end;
  use(Constant<kLanes>(), Channels{0, end});
  if (rest > 0) use(Constant<kLanes>(), Channels{channels - kLanes, channels, kLanes - rest});
}

// Calls use(Constant<taps>(), Constant<distance>()) where pixels are one or two taps apart and taps are few; returns
// false for others.
template <class Call, class Use>
bool with_taps(const Call& call, const Use& use) {
  const bool adjacent = call.pixels == 1 || call.x_pixel_step == call.x_tap_step;
  if (call.taps < 1 || call.taps > 7 || (!adjacent && call.x_pixel_step != 2 * call.x_tap_step)) return false;
  specialise<1, 2>(adjacent ? 1 : 2, [&](auto distance) {
    specialise<1, 2, 3, 4, 5, 6, 7>(call.taps, [&](auto taps) { use(taps, distance); });
  });
  return true;
}

// Q pixels, A taps apart, with rows of S taps: each vector of x is loaded once for all pixels that read it. The sums, a
// row of weights and the vector fit the sixteen registers of AVX2.
template <class T, int Q, int S, int A>
[[gnu::noinline]] void sum_pixels(const DepthwiseRun<T>& run, int64_t pixel, const Channels& channels) {
  // Copies: stores may alias any object.
  const int64_t x_step = run.x_tap_step, w_step = run.w_tap_step, y_step = run.y_pixel_step;
  const int64_t x_at = pixel * run.x_pixel_step;
  const bool add = run.add;
  const auto unfinished = lanes_from<Floats>(channels.done);
  const typename DepthwiseRun<T>::Row* const rows_end = run.rows + run.row_count;
  for (int64_t c = channels.begin; c < channels.end; c += kLanes) {
    const Floats first = run.bias ? load(run.bias + c) : Floats{};
    Floats sum[Q];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) sum[q] = first;
    for (const typename DepthwiseRun<T>::Row* row = run.rows; row != rows_end; ++row) {
      const T* x = row->x + x_at + c;
      const float* w = row->w + c;
      Floats weight[S];
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s, w += w_step) weight[s] = load(w);
#pragma GCC unroll 32
      for (int i = 0; i < (Q - 1) * A + S; ++i, x += x_step) {
        const Floats value = load(x);
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
    T* to = run.y + pixel * y_step + c;
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q, to += y_step) store_or_add(to, sum[q], add, unfinished);
  }
}

// Six pixels at a time, as registers allow, then four, two and one: every call loads the weights again.
template <class T, int S, int A>
void sum_all_pixels(const DepthwiseRun<T>& run, const Channels& channels) {
  int64_t pixel = 0;
  for (; pixel + 6 <= run.pixels; pixel += 6) sum_pixels<T, 6, S, A>(run, pixel, channels);
  for (; pixel + 4 <= run.pixels; pixel += 4) sum_pixels<T, 4, S, A>(run, pixel, channels);
  for (; pixel + 2 <= run.pixels; pixel += 2) sum_pixels<T, 2, S, A>(run, pixel, channels);
  for (; pixel < run.pixels; ++pixel) sum_pixels<T, 1, S, 1>(run, pixel, channels);
}

// Any number of taps, pixel by pixel.
template <class T, int lanes>
void sum_any(const DepthwiseRun<T>& run, const Channels& channels) {
  using V = typename VectorOf<lanes>::Type;
  for (int64_t pixel = 0; pixel < run.pixels; ++pixel)
    for (int64_t c = channels.begin; c < channels.end; c += lanes) {
      V sum = run.bias ? load<V>(run.bias + c) : V{};
      for (int64_t r = 0; r < run.row_count; ++r) {
        const T* x = run.rows[r].x + pixel * run.x_pixel_step + c;
        const float* w = run.rows[r].w + c;
        for (int64_t s = 0; s < run.taps; ++s, x += run.x_tap_step, w += run.w_tap_step) sum += load<V>(w) * load<V>(x);
      }
      store_or_add(run.y + pixel * run.y_pixel_step + c, sum, run.add, lanes_from<V>(channels.done));
    }
}

template <class T>
void sum_taps(const DepthwiseRun<T>& run) {
  for_vectors(run.channels, [&]<int lanes>(Constant<lanes>, const Channels& channels) {
    const auto unrolled = [&]<int S, int A>(Constant<S>, Constant<A>) { sum_all_pixels<T, S, A>(run, channels); };
    // Narrow vectors are not worth the code size of unrolled loops.
    if constexpr (lanes == kLanes)
      if (with_taps(run, unrolled)) return;
    sum_any<T, lanes>(run, channels);
  });
}

// Adds the products of Q pixels, A taps apart, to the sums of R rows of S taps.
template <int Q, int R, int S, int A, class T>
inline void add_pixels(const DepthwiseProducts<T>& p, const T* dy, const T* const (&x)[R], Floats (&sum)[R][S]) {
  Floats gradient[Q];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) gradient[q] = load(dy + q * p.dy_pixel_step);
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
      const Floats value = load(x[r] + i * p.x_tap_step);
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q)
        if (i - q * A >= 0 && i - q * A < S) sum[r][i - q * A] += gradient[q] * value;
    }
}

// R rows of S taps from row `first` on.
template <class T, int R, int S, int A>
void add_rows(const DepthwiseProducts<T>& p, int64_t first, const Channels& channels) {
  constexpr int kPixels = 4;
  const auto unfinished = lanes_from<Floats>(channels.done);
  for (int64_t c = channels.begin; c < channels.end; c += kLanes) {
    Floats sum[R][S] = {};
    const T *dy = p.dy + c, *x[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) x[r] = p.rows[first + r].x + c;
    const auto advance = [&](int64_t pixels) {
      dy += pixels * p.dy_pixel_step;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) x[r] += pixels * p.x_pixel_step;
    };
    int64_t pixel = 0;
    for (; pixel + kPixels <= p.pixels; pixel += kPixels, advance(kPixels)) add_pixels<kPixels, R, S, A>(p, dy, x, sum);
    for (; pixel < p.pixels; ++pixel, advance(1)) add_pixels<1, R, S, A>(p, dy, x, sum);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      float* to = p.rows[first + r].sums + c;
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s, to += p.sums_tap_step) store_or_add(to, sum[r][s], true, unfinished);
    }
  }
}

// Three rows at a time of few taps, which breaks the dependency chain of additions.
template <class T, int S, int A>
void add_all_rows(const DepthwiseProducts<T>& p, const Channels& channels) {
  int64_t row = 0;
  if constexpr (S <= 3)
    for (; row + 3 <= p.row_count; row += 3) add_rows<T, 3, S, A>(p, row, channels);
  for (; row < p.row_count; ++row) add_rows<T, 1, S, A>(p, row, channels);
}

// Any number of taps, one after the other.
template <class T, int lanes>
void add_any(const DepthwiseProducts<T>& p, const Channels& channels) {
  using V = typename VectorOf<lanes>::Type;
  for (int64_t c = channels.begin; c < channels.end; c += lanes)
    for (int64_t r = 0; r < p.row_count; ++r)
      for (int64_t s = 0; s < p.taps; ++s) {
        const T *dy = p.dy + c, *x = p.rows[r].x + s * p.x_tap_step + c;
        V sum = {};
        for (int64_t i = 0; i < p.pixels; ++i, dy += p.dy_pixel_step, x += p.x_pixel_step)
          sum += load<V>(dy) * load<V>(x);
        store_or_add(p.rows[r].sums + s * p.sums_tap_step + c, sum, true, lanes_from<V>(channels.done));
      }
}

template <class T>
void add_products(const DepthwiseProducts<T>& p) {
  for_vectors(p.channels, [&]<int lanes>(Constant<lanes>, const Channels& channels) {
    const auto unrolled = [&]<int S, int A>(Constant<S>, Constant<A>) { add_all_rows<T, S, A>(p, channels); };
    if constexpr (lanes == kLanes)
      if (with_taps(p, unrolled)) return;
    add_any<T, lanes>(p, channels);
  });
}

template <class T>
DepthwiseLoops<T> loops() {
  return {sum_taps<T>, add_products<T>};
}

}  // namespace

void add_depthwise(Kernels& kernels) { kernels.depthwise = {loops<float>(), loops<Bf16>()}; }

}  // namespace dtrain::cpu::DT_ISA
