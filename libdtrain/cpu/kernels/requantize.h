// The epilogue of int8 GEMMs: rows of 32-bit sums are scaled, shifted, added to a residual and stored as float or
// requantised to bytes. See Requantize.
#pragma once

#include <type_traits>

#include "libdtrain/cpu/kernels/gemm_u8s8.h"
#include "libdtrain/cpu/kernels/register_blocking.h"

namespace dtrain::cpu::DT_ISA {

// Finishes the first `valid` columns of a row of sums.
[[gnu::noinline]] inline void finish_valid_columns(const Requantize& epilogue, const int32_t* sums, int64_t at,
                                                   int64_t valid, const RequantizeOutput& y) {
  const Floats factor = broadcast(epilogue.residual_scale), floor = broadcast(epilogue.floor);
  for (int64_t i = 0; i < valid; i += kLanes) {
    const int64_t count = valid - i < kLanes ? valid - i : kLanes;
    const Floats sum = to_floats(load_unaligned<Ints>(sums + i));
    Floats value = multiply_add(sum, load(epilogue.scale + i), load(epilogue.shift + i));
    if (epilogue.residual_bytes)
      value = multiply_add(load_first(epilogue.residual_bytes + at + i, count), factor, value);
    if (epilogue.residual) value = multiply_add(load_first(epilogue.residual + at + i, count), factor, value);
    value = value < floor ? floor : value;  // lets a NaN through
    y.bytes ? store_first(y.bytes + at + i, value, count) : store_first(y.floats + at + i, value, count);
  }
}

// RequantizeRow applies no floor to bytes, which saturate at 0 anyway.
[[gnu::always_inline]] inline bool requantize_row_applies(const Requantize& epilogue, const RequantizeOutput& y) {
  return !y.bytes || !(epilogue.floor > 0);
}

// Finishes rows of a panel's columns, from `column` on; keeps what all rows share in registers. T and Residual are
// float or uint8_t; no residual: void.
template <class T, class Residual>
class RequantizeRow {
 public:
  [[gnu::always_inline]] RequantizeRow(const Requantize& epilogue, const Residual* residual, T* y, int64_t column)
      : residual_(residual),
        y_(y),
        column_(column),
        factor_(broadcast(epilogue.residual_scale)),
        floor_(broadcast(epilogue.floor)),
        scale_{load(epilogue.scale + column), load(epilogue.scale + column + kLanes)},
        shift_{load(epilogue.shift + column), load(epilogue.shift + column + kLanes)} {}

  // The row at `at`.
  [[gnu::always_inline]] void operator()(int64_t at, const Ints& low, const Ints& high) const {
    at += column_;
    store_both<false>(y_ + at, half_of_row(low, 0, at), half_of_row(high, 1, at + kLanes));
  }

 private:
  [[gnu::always_inline]] Floats half_of_row(const Ints& sum, int half, int64_t at) const {
    Floats value = multiply_add(to_floats(sum), scale_[half], shift_[half]);
    if constexpr (!std::is_void_v<Residual>) value = multiply_add(load(residual_ + at), factor_, value);
    if constexpr (std::is_same_v<T, float>) value = value < floor_ ? floor_ : value;  // lets a NaN through
    return value;
  }

  // Copies: stores of bytes may alias any object, so that members of the epilogue would be loaded again for each row.
  const Residual* residual_;
  T* y_;
  int64_t column_;
  Floats factor_, floor_, scale_[2], shift_[2];
};

// Calls use(RequantizeRow) with the specialisation for the operands that are present.
template <class T, class Use>
[[gnu::always_inline]] inline void with_residual(const Requantize& epilogue, T* y, int64_t column, const Use& use) {
  if (epilogue.residual_bytes)
    use(RequantizeRow<T, uint8_t>(epilogue, epilogue.residual_bytes, y, column));
  else if (epilogue.residual)
    use(RequantizeRow<T, float>(epilogue, epilogue.residual, y, column));
  else
    use(RequantizeRow<T, void>(epilogue, nullptr, y, column));
}
template <class Use>
[[gnu::always_inline]] inline void with_requantize_row(const Requantize& epilogue, const RequantizeOutput& y,
                                                       int64_t column, const Use& use) {
  y.bytes ? with_residual(epilogue, y.bytes, column, use) : with_residual(epilogue, y.floats, column, use);
}

// The epilogue of a block of R rows, from row `first` of `g` on, by P panels.
template <int R, int P>
struct RequantizedOutput {
  const IndirectGemmU8S8& g;
  int64_t first;

  int64_t offset(int r) const { return (first + r) * g.y_stride; }

  template <bool kWritten, class T>
  [[gnu::always_inline]] void prefetch_rows(const T* from) const {
    if (!from) return;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) prefetch_row<P * kColumns, kWritten>(from + offset(r));
  }
  // Prefetches the operands of the epilogue of all rows at once: by halves, short rows took up to 12 % longer.
  [[gnu::always_inline]] void prefetch_all() const {
    prefetch_rows<true>(g.y.bytes);
    prefetch_rows<true>(g.y.floats);
    prefetch_rows<false>(g.end.residual_bytes);
    prefetch_rows<false>(g.end.residual);
  }

  bool all_columns() const { return g.valid >= P * kColumns && requantize_row_applies(g.end, g.y); }

  [[gnu::always_inline]] void store_rows(const Sums<Ints, R, P>& sum) const {
    const int64_t begin = offset(0),
                  stride = g.y_stride;  // copies, as those of RequantizeRow
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel)
      with_requantize_row(
          g.end, g.y, panel * kColumns, [&](const auto& finish_row) __attribute__((always_inline)) {
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) finish_row(begin + r * stride, sum[r][2 * panel], sum[r][2 * panel + 1]);
          });
  }
  void store_valid_columns(int r, const Ints* sums) const {
    finish_valid_columns(g.end, reinterpret_cast<const int32_t*>(sums), offset(r), g.valid, g.y);
  }
};

}  // namespace dtrain::cpu::DT_ISA
