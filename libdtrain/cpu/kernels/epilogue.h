// The epilogue of floating-point GEMMs: bias, residual, activation and batch-norm statistics, applied to rows of
// accumulators as they are stored. See Epilogue.
#pragma once

#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/register_blocking.h"

namespace dtrain::cpu::DT_ISA {

// Finishes the first `valid` lanes of a vector of one row.
template <class T>
[[gnu::noinline]] inline void finish_lanes(const Floats& value, const Epilogue<T>& epilogue, int64_t column, int64_t at,
                                           int64_t valid, T* y) {
  float lanes[kLanes];
  store(lanes, value);
  for (int64_t i = 0; i < valid; ++i) {
    float one = lanes[i];
    if (epilogue.bias) one += epilogue.bias[column + i];
    if (epilogue.residual) one += load<float>(epilogue.residual + at + i);
    store(y + at + i, epilogue.relu && one < 0 ? 0 : one);
  }
}

// The bias of a panel's columns, in registers.
struct BiasVectors {
  bool present;
  Floats low{}, high{};

  [[gnu::always_inline]] explicit BiasVectors(const float* bias) : present(bias) {
    if (present) low = load(bias), high = load(bias + kLanes);
  }
};

// Partial sums of the batch-norm statistics of a panel's columns, from `column` on, in registers.
struct StatisticsVectors {
  bool present;
  float *to_sum = nullptr, *to_square = nullptr;
  Floats pivot[2] = {}, sum[2] = {}, square[2] = {};

  [[gnu::always_inline]] StatisticsVectors(const ColumnStatistics& to, int64_t column) : present(to.pivot) {
    if (!present) return;
    to_sum = to.sum + column, to_square = to.square + column;
    for (int half = 0; half < 2; ++half) pivot[half] = load(to.pivot + column + half * kLanes);
  }

  [[gnu::always_inline]] void add(const Floats& value, int half) {
    if (!present) return;
    const Floats d = value - pivot[half];
    sum[half] += d;
    square[half] += d * d;
  }
  [[gnu::always_inline]] void flush() const {
    if (!present) return;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      store(to_sum + half * kLanes, load(to_sum + half * kLanes) + sum[half]);
      store(to_square + half * kLanes, load(to_square + half * kLanes) + square[half]);
    }
  }
};

// Finishes a panel's columns of the row at `at`.
template <bool kNonTemporal, class T>
[[gnu::always_inline]] inline void finish_row(const Epilogue<T>& epilogue, const BiasVectors& bias, int64_t at,
                                              const Floats& low, const Floats& high, T* y,
                                              StatisticsVectors& statistics) {
  Floats value[2] = {low, high};
  if (bias.present) value[0] += bias.low, value[1] += bias.high;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    if (epilogue.residual) value[half] += load(epilogue.residual + at + half * kLanes);
    if (epilogue.relu) value[half] = value[half] < 0 ? Floats{} : value[half];  // lets a NaN through
    statistics.add(value[half], half);
  }
  store_both<kNonTemporal>(y + at, value[0], value[1]);
}

// Finishes those of a panel's columns, from `column` on, that are among the first `valid` of the row at `at`.
template <class T>
[[gnu::always_inline]] inline void finish_partial_row(const Epilogue<T>& epilogue, int64_t column, int64_t at,
                                                      int64_t valid, const Floats& low, const Floats& high, T* y) {
  const int64_t left = valid - column;
  finish_lanes(low, epilogue, column, at + column, left < kLanes ? left : kLanes, y);
  finish_lanes(high, epilogue, column + kLanes, at + column + kLanes, left - kLanes < kLanes ? left - kLanes : kLanes,
               y);
}

// The epilogue of a block of R rows, from row `first` of `g` on, by P panels.
template <int R, int P, class T>
struct FloatOutput {
  const IndirectGemm<T>& g;
  int64_t first;

  int64_t offset(int r) const { return g.places[first + r]; }

  void prefetch_all() const {}  // but by halves, while the sums are accumulated
  // Prefetches what the epilogue reads and writes of a row.
  [[gnu::always_inline]] void prefetch(int row) const {
    constexpr auto kLine = static_cast<int>(64 / sizeof(T));
#pragma GCC unroll 8
    for (int i = 0; i < P * kColumns; i += kLine) {
      if (!g.non_temporal) __builtin_prefetch(g.y + offset(row) + i, 1);
      if (g.end.residual) __builtin_prefetch(g.end.residual + offset(row) + i);
    }
  }

  bool all_columns() const { return g.valid == P * kColumns; }

  template <bool kNonTemporal>
  [[gnu::always_inline]] void store_rows(const FloatSums<R, P>& sum, const Epilogue<T>& epilogue) const {
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel) {
      const BiasVectors bias(epilogue.bias ? epilogue.bias + panel * kColumns : nullptr);
      StatisticsVectors statistics(epilogue.sums, panel * kColumns);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
        finish_row<kNonTemporal>(epilogue, bias, offset(r) + panel * kColumns, sum[r][2 * panel], sum[r][2 * panel + 1],
                                 g.y, statistics);
      statistics.flush();
    }
  }
  // Specialised for the epilogues of a training step in the blocks that most rows are in: no operation, and statistics
  // alone.
  [[gnu::always_inline]] void store_rows(const FloatSums<R, P>& sum) const {
    if (g.non_temporal) return store_rows<true>(sum, g.end);
    if constexpr (R >= kRows / P - 1) {
      const auto [bias, residual, relu, statistics] = g.end;
      const bool plain = !bias && !residual && !relu;
      if (plain && statistics.pivot) return store_rows<false>(sum, Epilogue<T>{.sums = statistics});
      if (plain) return store_rows<false>(sum, Epilogue<T>{});
    }
    store_rows<false>(sum, g.end);
  }
  // Only the valid columns.
  [[gnu::noinline]] void store_valid_columns(const FloatSums<R, P>& sum) const {
    for (int panel = 0; panel < P; ++panel)
      for (int r = 0; r < R; ++r)
        finish_partial_row(g.end, panel * kColumns, offset(r), g.valid, sum[r][2 * panel], sum[r][2 * panel + 1], g.y);
  }
};

}  // namespace dtrain::cpu::DT_ISA
