#include "libdtrain/cpu/kernels/winograd.h"

#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/vectors.h"
#include "libdtrain/cpu/kernels/winograd_math.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int kPoints = 36;
constexpr int kColumns = 2 * kLanes;
using Block6 = Floats[6][6];

void put(float* to, int64_t point_step, const Block6& block) {
  for (int point = 0; point < kPoints; ++point) store(to + point * point_step, block[point / 6][point % 6]);
}

// Reads the first N x N pixels of the window.
template <int N, class T, class Transform>
[[gnu::always_inline]] inline void window_tile(const WinogradWindow<T>& window, int64_t channels,
                                               const WinogradPlace& place, Transform&& one) {
  float* to = place.to;
  int64_t run = 0;
  for (int64_t c = 0; c < channels; c += kLanes) {
    Floats in[N][N];
    Block6 out;
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i)
#pragma GCC unroll 6
      for (int j = 0; j < N; ++j) in[i][j] = load(window.pixels[i * 6 + j] + c);
    transform_2d<N, 6>(in, out, one);
    put(to + run, place.point_step, out);
    run += kLanes;
    if (run < place.run) continue;
    run = 0;
    to += place.run_step;
  }
}

template <class T>
void input_tile(const WinogradWindow<T>& window, int64_t channels, const WinogradPlace& place) {
  window_tile<6>(window, channels, place, winograd_input<Floats>);
}

template <class T>
void gradient_tile(const WinogradWindow<T>& window, int64_t channels, const WinogradPlace& place) {
  window_tile<4>(window, channels, place, winograd_output_adjoint<Floats>);
}

template <class T>
void output_tile(const float* products, int64_t channels, const WinogradPixels<T>& y) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    const Floats bias = y.end.bias ? load(y.end.bias + c) : Floats{};
    Block6 in;
    Floats out[4][4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i)
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) in[i][j] = load(products + (i * 6 + j) * channels + c);
    transform_2d<6, 4>(in, out, winograd_output<Floats>);
    const ColumnSums& sums = y.end.sums;
    const Floats pivot = sums.pivot ? load(sums.pivot + c) : Floats{};
    Floats sum{}, square{};
    for (int64_t i = 0; i < y.rows; ++i)
      for (int64_t j = 0; j < y.columns; ++j) {
        const int64_t at = i * y.row_step + j * y.column_step + c;
        Floats value = out[i][j] + bias;
        if (y.end.residual) value += load(y.end.residual + at);
        if (y.end.relu) value = value < 0 ? Floats{} : value;  // lets a NaN through
        store(y.to + at, value);
        sum += value - pivot;
        square += (value - pivot) * (value - pivot);
      }
    if (sums.pivot == nullptr) continue;
    store(sums.sum + c, load(sums.sum + c) + sum);
    store(sums.square + c, load(sums.square + c) + square);
  }
}

template <class T>
void filters(const WinogradFilters<T>& f) {
  float g[kLanes][9][kColumns];  // [inner][tap][outer]
  for (int tap = 0; tap < 9; ++tap) {
    const T* const from = f.w + (f.turned ? 8 - tap : tap) * f.tap_step;
    if (f.outer_step == 1)
      for (int i = 0; i < kLanes; ++i)
        for (int o = 0; o < kColumns; o += kLanes) store(&g[i][tap][o], load(from + i * f.inner_step + o));
    else
      for (int o = 0; o < kColumns; ++o)
        for (int i = 0; i < kLanes; ++i) g[i][tap][o] = load<float>(from + o * f.outer_step + i);
  }
  for (int i = 0; i < kLanes; ++i)
    for (int o = 0; o < kColumns; o += kLanes) {
      Floats in[3][3];
      Block6 u;
      for (int tap = 0; tap < 9; ++tap) in[tap / 3][tap % 3] = load(&g[i][tap][o]);
      transform_2d<3, 6>(in, u, winograd_filter<Floats>);
      for (int point = 0; point < kPoints; ++point)
        store(f.to + point * f.point_step + i * kColumns + o, u[point / 6][point % 6]);
    }
}

void filter_gradient(const WinogradFilterGradient& f) {
  for (int64_t c = 0; c < f.channels; c += kLanes) {
    Block6 in;
    Floats out[3][3];
    for (int point = 0; point < kPoints; ++point) in[point / 6][point % 6] = load(f.u + point * f.point_step + c);
    transform_2d<6, 3>(in, out, winograd_filter_adjoint<Floats>);
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

WinogradKernels winograd_kernels() { return {{transforms<float>(), transforms<Bf16>()}, kLanes, filter_gradient}; }

}  // namespace dtrain::cpu::DT_ISA
