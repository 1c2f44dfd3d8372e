// What is done to a row of a tile of sums before it is stored; see EndOf.
#pragma once

#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/isa/isa.h"

namespace dtrain::cpu::DT_ISA {

// The first `valid` lanes of a vector of one row, ended and stored.
template <class T>
[[gnu::noinline]] inline void finish_lanes(const Floats& value, const Epilogue<T>& end, int64_t column, int64_t at,
                                           int64_t valid, T* y) {
  float lanes[kLanes];
  store(lanes, value);
  for (int64_t i = 0; i < valid; ++i) {
    float one = lanes[i];
    if (end.bias) one += end.bias[column + i];
    if (end.residual) one += load<float>(end.residual + at + i);
    store(y + at + i, end.relu && one < 0 ? 0 : one);
  }
}

// The bias of all columns, at `bias`; null: there is none.
struct BiasVectors {
  bool wanted;
  Floats low{}, high{};

  [[gnu::always_inline]] explicit BiasVectors(const float* bias) : wanted(bias) {
    if (wanted) low = load(bias), high = load(bias + kLanes);
  }
};

// The sums over the rows of a tile, of the columns from `column` on, if they are wanted.
struct StatisticsVectors {
  bool wanted;
  float *to_sum = nullptr, *to_square = nullptr;
  Floats pivot[2] = {}, sum[2] = {}, square[2] = {};

  [[gnu::always_inline]] StatisticsVectors(const ColumnStatistics& to, int64_t column) : wanted(to.pivot) {
    if (!wanted) return;
    to_sum = to.sum + column, to_square = to.square + column;
    for (int half = 0; half < 2; ++half) pivot[half] = load(to.pivot + column + half * kLanes);
  }

  [[gnu::always_inline]] void add(const Floats& value, int half) {
    if (!wanted) return;
    const Floats d = value - pivot[half];
    sum[half] += d;
    square[half] += d * d;
  }
  [[gnu::always_inline]] void store_sums() const {
    if (!wanted) return;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      store(to_sum + half * kLanes, load(to_sum + half * kLanes) + sum[half]);
      store(to_square + half * kLanes, load(to_square + half * kLanes) + square[half]);
    }
  }
};

// All columns of the row at `at`.
template <bool kNonTemporal, class T>
[[gnu::always_inline]] inline void finish_row(const Epilogue<T>& end, const BiasVectors& bias, int64_t at,
                                              const Floats& low, const Floats& high, T* y, StatisticsVectors& sums) {
  Floats value[2] = {low, high};
  if (bias.wanted) value[0] += bias.low, value[1] += bias.high;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    if (end.residual) value[half] += load(end.residual + at + half * kLanes);
    if (end.relu) value[half] = value[half] < 0 ? Floats{} : value[half];  // lets a NaN through
    sums.add(value[half], half);
  }
  store_both<kNonTemporal>(y + at, value[0], value[1]);
}

// Those columns of the two vectors from `column` on, of the row at `at`, that are among its first `valid`.
template <class T>
[[gnu::always_inline]] inline void finish_partial_row(const Epilogue<T>& end, int64_t column, int64_t at, int64_t valid,
                                                      const Floats& low, const Floats& high, T* y) {
  const int64_t left = valid - column;
  finish_lanes(low, end, column, at + column, left < kLanes ? left : kLanes, y);
  finish_lanes(high, end, column + kLanes, at + column + kLanes, left - kLanes < kLanes ? left - kLanes : kLanes, y);
}

}  // namespace dtrain::cpu::DT_ISA
