// The epilogue of floating-point GEMMs: bias, residual, activation and batch-norm statistics, applied to rows of
// accumulators as they are stored. See Epilogue.
#pragma once

#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/register_blocking.h"

namespace dtrain::cpu::DT_ISA {

// The epilogue of one vector of columns, from `column` on. Keeps the bias and the partial sums of batch-norm statistics
// in registers.
template <class T>
class VectorEpilogue {
 public:
  [[gnu::always_inline]] VectorEpilogue(const Epilogue<T>& epilogue, int64_t column)
      : epilogue_(epilogue), column_(column) {
    if (epilogue.bias) bias_ = load(epilogue.bias + column);
    if (epilogue.sums.pivot) pivot_ = load(epilogue.sums.pivot + column);
  }

  // `at`: offset of the first element in y, and in the residual.
  [[gnu::always_inline]] Floats operator()(Floats value, int64_t at) {
    if (epilogue_.bias) value += bias_;
    if (epilogue_.residual) value += load(epilogue_.residual + at);
    if (epilogue_.relu) value = value < 0 ? Floats{} : value;  // lets a NaN through
    if (epilogue_.sums.pivot) {
      const Floats d = value - pivot_;
      sum_ += d;
      square_ += d * d;
    }
    return value;
  }

  // Adds the partial sums to the statistics.
  [[gnu::always_inline]] void flush() const {
    if (!epilogue_.sums.pivot) return;
    float *const sum = epilogue_.sums.sum + column_, *const square = epilogue_.sums.square + column_;
    store(sum, load(sum) + sum_);
    store(square, load(square) + square_);
  }

 private:
  const Epilogue<T> epilogue_;  // a copy: stores may alias any object
  const int64_t column_;
  Floats bias_{}, pivot_{}, sum_{}, square_{};
};

// The epilogue of a panel's two vectors of columns.
template <class T>
struct PanelEpilogue {
  VectorEpilogue<T> low, high;

  [[gnu::always_inline]] PanelEpilogue(const Epilogue<T>& epilogue, int64_t column)
      : low(epilogue, column), high(epilogue, column + kLanes) {}

  template <bool kNonTemporal>
  [[gnu::always_inline]] void store_row(const Floats& first, const Floats& second, int64_t at, T* y) {
    store_both<kNonTemporal>(y + at, low(first, at), high(second, at + kLanes));
  }
  [[gnu::always_inline]] void flush() const {
    low.flush();
    high.flush();
  }
};

// Finishes the first `valid` columns of a row of sums.
template <class T>
[[gnu::noinline]] inline void finish_valid_columns(const Epilogue<T>& epilogue, const float* sums, int64_t at,
                                                   int64_t valid, T* y) {
  for (int64_t i = 0; i < valid; ++i) {
    float value = sums[i];
    if (epilogue.bias) value += epilogue.bias[i];
    if (epilogue.residual) value += load<float>(epilogue.residual + at + i);
    store(y + at + i, epilogue.relu && value < 0 ? 0 : value);
  }
}

// The epilogue of a block of R rows, from row `first` of `g` on, by P panels.
template <int R, int P, class T>
struct FloatOutput {
  const IndirectGemm<T>& g;
  int64_t first;

  int64_t offset(int r) const { return g.places[first + r]; }

  // Prefetches the operands of the epilogue of a row: by halves, while the sums are accumulated.
  [[gnu::always_inline]] void prefetch(int row) const {
    if (!g.non_temporal) prefetch_row<P * kColumns, true>(g.y + offset(row));
    if (g.end.residual) prefetch_row<P * kColumns>(g.end.residual + offset(row));
  }

  bool all_columns() const { return g.valid == P * kColumns; }

  template <bool kNonTemporal>
  [[gnu::always_inline]] void store_rows(const Sums<Floats, R, P>& sum, const Epilogue<T>& epilogue) const {
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel) {
      PanelEpilogue<T> finish(epilogue, panel * kColumns);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
        finish.template store_row<kNonTemporal>(sum[r][2 * panel], sum[r][2 * panel + 1], offset(r) + panel * kColumns,
                                                g.y);
      finish.flush();
    }
  }
  // Specialised for the epilogues of a training step in the blocks that most rows are in: no operation, and statistics
  // alone.
  [[gnu::always_inline]] void store_rows(const Sums<Floats, R, P>& sum) const {
    if (g.non_temporal) return store_rows<true>(sum, g.end);
    if constexpr (R >= kRows / P - 1) {
      const auto [bias, residual, relu, statistics] = g.end;
      const bool plain = !bias && !residual && !relu;
      if (plain && statistics.pivot) return store_rows<false>(sum, Epilogue<T>{.sums = statistics});
      if (plain) return store_rows<false>(sum, Epilogue<T>{});
    }
    store_rows<false>(sum, g.end);
  }
  void store_valid_columns(int r, const Floats* sums) const {
    finish_valid_columns(g.end, reinterpret_cast<const float*>(sums), offset(r), g.valid, g.y);
  }
};

}  // namespace dtrain::cpu::DT_ISA
