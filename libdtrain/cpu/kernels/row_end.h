// What is done to a row of a tile of sums before it is stored; see EndOf.
#pragma once

#include "libdtrain/cpu/kernels/product.h"
#include "libdtrain/cpu/kernels/vectors.h"

namespace dtrain::cpu::DT_ISA {

// The first `valid` lanes of a vector of one row, ended and stored.
template <class T>
[[gnu::noinline]] inline void end_lanes(const Floats& value, const EndOf<T>& end, int64_t column, int64_t at,
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

// The bias of all columns.
struct RowBias {
  Floats low, high;

  template <class T>
  [[gnu::always_inline]] explicit RowBias(const EndOf<T>& end)
      : low(end.bias ? load(end.bias) : Floats{}), high(end.bias ? load(end.bias + kLanes) : Floats{}) {}
};

// All columns of the row at `at`.
template <bool kStreams, class T>
[[gnu::always_inline]] inline void end_row(const EndOf<T>& end, const RowBias& bias, int64_t at, const Floats& low,
                                           const Floats& high, T* y) {
  Floats value[2] = {low + bias.low, high + bias.high};
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    if (end.residual) value[half] += load(end.residual + at + half * kLanes);
    if (end.relu) value[half] = value[half] < 0 ? Floats{} : value[half];  // lets a NaN through
  }
  store_both<kStreams>(y + at, value[0], value[1]);
}

// The first `valid` columns of the row at `at`.
template <class T>
[[gnu::always_inline]] inline void end_part_of_row(const EndOf<T>& end, int64_t at, int64_t valid, const Floats& low,
                                                   const Floats& high, T* y) {
  end_lanes(low, end, 0, at, valid < kLanes ? valid : kLanes, y);
  end_lanes(high, end, kLanes, at + kLanes, valid - kLanes, y);
}

}  // namespace dtrain::cpu::DT_ISA
