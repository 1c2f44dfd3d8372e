#include "libdtrain/cpu/kernels/winograd.h"

#include "libdtrain/cpu/kernels/epilogue.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/winograd_math.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int kPoints = 36;
using Block6 = Floats[6][6];

// Reads an N x N block, the vector of row i and column j from at(i, j).
template <int N, class Address>
[[gnu::always_inline]] inline void load_block(Floats (&block)[N][N], const Address& at) {
#pragma GCC unroll 6
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 6
    for (int j = 0; j < N; ++j) block[i][j] = load(at(i, j));
}

[[gnu::always_inline]] inline void store_points(float* to, int64_t point_step, const Block6& block) {
#pragma GCC unroll 36  // else the address of each element is computed
  for (int point = 0; point < kPoints; ++point) store(to + point * point_step, block[point / 6][point % 6]);
}

// Transforms the first N x N pixels of the window.
template <int N, class T, class Transform>
[[gnu::always_inline]] inline void window_tile(const WinogradWindow<T>& window, int64_t channels,
                                               const WinogradTileLayout& place, Transform&& one) {
  // The next tile is written after this one: too many streams for the hardware prefetcher.
  const bool prefetches = place.run < channels;
  float* to = place.to;
  int64_t run = 0;
  for (int64_t c = 0; c < channels; c += kLanes) {
    Floats in[N][N];
    Block6 out;
    load_block(
        in, [&](int i, int j) __attribute__((always_inline)) { return window.pixels[i * 6 + j] + c; });
    transform_2d<N, 6>(in, out, one);
    if (prefetches) {
#pragma GCC unroll 36
      for (int point = 0; point < kPoints; ++point)
        __builtin_prefetch(to + run + point * place.point_step + place.run, 1);
    }
    store_points(to + run, place.point_step, out);
    run += kLanes;
    if (run < place.run) continue;
    run = 0;
    to += place.run_step;
  }
}

template <class T>
void input_tile(const WinogradWindow<T>& window, int64_t channels, const WinogradTileLayout& place) {
  window_tile<6>(window, channels, place, winograd_input<Floats>);
}

template <class T>
void gradient_tile(const WinogradWindow<T>& window, int64_t channels, const WinogradTileLayout& place) {
  window_tile<4>(window, channels, place, winograd_output_adjoint<Floats>);
}

// `rows`, `columns` and the operands that `end` lacks are constants after inlining, where it matters.
template <class T>
[[gnu::always_inline]] inline void output_pixels(const float* products, int64_t channels, const WinogradPixels<T>& y,
                                                 int64_t rows, int64_t columns, const Epilogue<T>& end) {
  T* const to = y.to;
  const int64_t row_step = y.row_step, column_step = y.column_step;
  for (int64_t c = 0; c < channels; c += kLanes) {
    VectorEpilogue<T> finish(end, c);
    Block6 in;
    Floats out[4][4];
    load_block(
        in, [&](int i, int j) __attribute__((always_inline)) { return products + (i * 6 + j) * channels + c; });
    transform_2d<6, 4>(in, out, winograd_output<Floats>);
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; ++i)
#pragma GCC unroll 4
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = i * row_step + j * column_step + c;
        store(to + at, finish(out[i][j], at));
      }
    finish.flush();
  }
}

template <class T>
void output_tile(const float* products, int64_t channels, const WinogradPixels<T>& y) {
  const auto [bias, residual, relu, sums] = y.end;
  if (bias || residual || relu || y.rows < 4 || y.columns < 4)
    return output_pixels(products, channels, y, y.rows, y.columns, y.end);
  if (sums.pivot) return output_pixels(products, channels, y, 4, 4, Epilogue<T>{.sums = sums});
  output_pixels(products, channels, y, 4, 4, Epilogue<T>{});
}

// One tap of the filters, as [inner][outer]. Prefetches the next inner channels, which the hardware prefetcher does not
// foresee.
template <class T>
[[gnu::always_inline]] inline void filter_tap(const WinogradFilters<T>& f, const T* from,
                                              float (&to)[kLanes][kColumns]) {
  constexpr int kBlock = 8;
  using Block = VectorOf<kBlock>::Type;
  if (f.outer_step == 1) {
    for (int i = 0; i < kLanes; ++i)
      for (int o = 0; o < kColumns; o += kLanes) {
        __builtin_prefetch(from + (kLanes + i) * f.inner_step + o);
        store(&to[i][o], load(from + i * f.inner_step + o));
      }
    return;
  }
  for (int o = 0; o < kColumns; ++o) __builtin_prefetch(from + o * f.outer_step + kLanes);
  for (int o = 0; o < kColumns; o += kBlock)
    for (int i = 0; i < kLanes; i += kBlock) {
      Block block[kBlock];
#pragma GCC unroll 8
      for (int j = 0; j < kBlock; ++j) block[j] = load<Block>(from + (o + j) * f.outer_step + i);
      transpose(block);
#pragma GCC unroll 8
      for (int j = 0; j < kBlock; ++j) store(&to[i + j][o], block[j]);
    }
}

template <class T>
void filters(const WinogradFilters<T>& f) {
  float g[9][kLanes][kColumns];  // [tap][inner][outer]
  for (int tap = 0; tap < 9; ++tap) filter_tap(f, f.w + (f.turned ? 8 - tap : tap) * f.tap_step, g[tap]);
  for (int i = 0; i < kLanes; ++i)
    for (int o = 0; o < kColumns; o += kLanes) {
      Floats in[3][3];
      Block6 u;
      load_block(
          in, [&](int r, int s) __attribute__((always_inline)) { return &g[3 * r + s][i][o]; });
      transform_2d<3, 6>(in, u, winograd_filter<Floats>);
      store_points(f.to + i * kColumns + o, f.point_step, u);
    }
}

void filter_gradient(const WinogradFilterGradient& f) {
  for (int64_t c = 0; c < f.channels; c += kLanes) {
    Block6 in;
    Floats out[3][3];
    load_block(
        in, [&](int i, int j) __attribute__((always_inline)) { return f.u + (i * 6 + j) * f.point_step + c; });
    transform_2d<6, 3>(in, out, winograd_filter_adjoint<Floats>);
#pragma GCC unroll 9
    for (int tap = 0; tap < 9; ++tap) {
      float* const to = f.dw + tap * f.tap_step + c;
      const Floats value = out[tap / 3][tap % 3];
      store(to, f.add ? load(to) + value : value);
    }
  }
}

template <class T>
WinogradTransforms<T> transforms() {
  return {input_tile<T>, gradient_tile<T>, output_tile<T>, filters<T>};
}

}  // namespace

void add_winograd(Kernels& kernels) {
  kernels.winograd = {{transforms<float>(), transforms<Bf16>()}, kLanes, filter_gradient};
}

}  // namespace dtrain::cpu::DT_ISA
