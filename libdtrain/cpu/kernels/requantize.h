// The epilogue of int8 GEMMs: rows of 32-bit sums are scaled, shifted, added to a residual and stored as float or
// requantised to bytes. See Requantize.
#pragma once

#include "libdtrain/cpu/kernels/gemm_u8s8.h"
#include "libdtrain/cpu/kernels/register_blocking.h"

namespace dtrain::cpu::DT_ISA {

// The operands of one vector of a row, at the vector's first element.
struct RequantizeLanes {
  const uint8_t* residual_bytes;
  const float* residual;
  uint8_t* y_bytes;
  float* y;
  int64_t column;

  RequantizeLanes(const Requantize& epilogue, const RequantizeOutput& to, int64_t at, int64_t first)
      : residual_bytes(epilogue.residual_bytes ? epilogue.residual_bytes + at : nullptr),
        residual(epilogue.residual ? epilogue.residual + at : nullptr),
        y_bytes(to.bytes ? to.bytes + at : nullptr),
        y(to.floats ? to.floats + at : nullptr),
        column(first) {}
};

[[gnu::always_inline]] inline void requantize(const Ints& sum, const Requantize& epilogue, const RequantizeLanes& at) {
  Floats value = multiply_add(to_floats(sum), load(epilogue.scale + at.column), load(epilogue.shift + at.column));
  const Floats factor = broadcast(epilogue.residual_scale);
  if (at.residual_bytes) value = multiply_add(bytes_to_floats(at.residual_bytes), factor, value);
  if (at.residual) value = multiply_add(load(at.residual), factor, value);
  const Floats floor = broadcast(epilogue.floor);
  value = value < floor ? floor : value;  // lets a NaN through
  if (at.y_bytes)
    store_bytes(at.y_bytes, value);
  else
    store(at.y, value);
}

// Finishes the first `valid` lanes of a vector, by way of memory for a whole one.
[[gnu::noinline]] inline void finish_lanes(const Ints& sum, const Requantize& epilogue, RequantizeLanes at,
                                           int64_t valid) {
  uint8_t residual_bytes[kLanes] = {}, y_bytes[kLanes];
  float residual[kLanes] = {}, y[kLanes];
  uint8_t* const to_bytes = at.y_bytes;
  float* const to = at.y;
  for (int64_t i = 0; i < valid; ++i) {
    if (at.residual_bytes) residual_bytes[i] = at.residual_bytes[i];
    if (at.residual) residual[i] = at.residual[i];
  }
  if (at.residual_bytes) at.residual_bytes = residual_bytes;
  if (at.residual) at.residual = residual;
  if (to_bytes) at.y_bytes = y_bytes;
  if (to) at.y = y;
  requantize(sum, epilogue, at);
  for (int64_t i = 0; i < valid; ++i) {
    if (to_bytes) to_bytes[i] = y_bytes[i];
    if (to) to[i] = y[i];
  }
}

// Finishes those of a panel's columns, from `column` on, that are among the first `valid` of the row at `at`.
[[gnu::always_inline]] inline void finish_partial_row(const Requantize& epilogue, int64_t column, int64_t at,
                                                      int64_t valid, const Ints& low, const Ints& high,
                                                      const RequantizeOutput& y) {
  const int64_t left = valid - column, after = left - kLanes;
  if (left > 0)
    finish_lanes(low, epilogue, RequantizeLanes(epilogue, y, at + column, column), left < kLanes ? left : kLanes);
  column += kLanes;
  if (after > 0)
    finish_lanes(high, epilogue, RequantizeLanes(epilogue, y, at + column, column), after < kLanes ? after : kLanes);
}

enum class Residual { none, bytes, floats };

// RequantizeRow applies no floor to bytes, which saturate at 0 anyway.
[[gnu::always_inline]] inline bool requantize_row_applies(const Requantize& epilogue, const RequantizeOutput& y) {
  return !y.bytes || !(epilogue.floor > 0);
}

// Finishes rows of a panel's columns, from `column` on; keeps what all rows share in registers.
template <Residual kResidual, bool kBytes>
class RequantizeRow {
 public:
  [[gnu::always_inline]] RequantizeRow(const Requantize& epilogue, const RequantizeOutput& to, int64_t column)
      : residual_bytes_(kResidual == Residual::bytes ? epilogue.residual_bytes + column : nullptr),
        residual_(kResidual == Residual::floats ? epilogue.residual + column : nullptr),
        y_bytes_(kBytes ? to.bytes + column : nullptr),
        y_(kBytes ? nullptr : to.floats + column),
        factor_(broadcast(epilogue.residual_scale)),
        floor_(broadcast(epilogue.floor)),
        scale_{load(epilogue.scale + column), load(epilogue.scale + column + kLanes)},
        shift_{load(epilogue.shift + column), load(epilogue.shift + column + kLanes)} {}

  // The row at `at`.
  [[gnu::always_inline]] void operator()(int64_t at, const Ints& low, const Ints& high) const {
    const Floats first = half_of_row(low, 0, at), second = half_of_row(high, 1, at + kLanes);
    if constexpr (kBytes) {
      store_bytes(y_bytes_ + at, first, second);
    } else {
      store(y_ + at, first);
      store(y_ + at + kLanes, second);
    }
  }

 private:
  [[gnu::always_inline]] Floats half_of_row(const Ints& sum, int half, int64_t at) const {
    Floats value = multiply_add(to_floats(sum), scale_[half], shift_[half]);
    if constexpr (kResidual == Residual::bytes)
      value = multiply_add(bytes_to_floats(residual_bytes_ + at), factor_, value);
    if constexpr (kResidual == Residual::floats) value = multiply_add(load(residual_ + at), factor_, value);
    if constexpr (!kBytes) value = value < floor_ ? floor_ : value;  // lets a NaN through
    return value;
  }

  // Copies: stores of bytes may alias any object, so that members of the epilogue would be loaded again for each row.
  const uint8_t* residual_bytes_;
  const float* residual_;
  uint8_t* y_bytes_;
  float* y_;
  Floats factor_, floor_, scale_[2], shift_[2];
};

// Calls use(RequantizeRow) with the specialisation for the operands that are present.
template <Residual kResidual, class Use>
[[gnu::always_inline]] inline void with_residual(const Requantize& epilogue, const RequantizeOutput& y, int64_t column,
                                                 const Use& use) {
  if (y.bytes)
    use(RequantizeRow<kResidual, true>(epilogue, y, column));
  else
    use(RequantizeRow<kResidual, false>(epilogue, y, column));
}
template <class Use>
[[gnu::always_inline]] inline void with_requantize_row(const Requantize& epilogue, const RequantizeOutput& y,
                                                       int64_t column, const Use& use) {
  if (epilogue.residual_bytes)
    with_residual<Residual::bytes>(epilogue, y, column, use);
  else if (epilogue.residual)
    with_residual<Residual::floats>(epilogue, y, column, use);
  else
    with_residual<Residual::none>(epilogue, y, column, use);
}

// The epilogue of a block of R rows, from row `first` of `g` on, by P panels.
template <int R, int P>
struct RequantizedOutput {
  const IndirectGemmU8S8& g;
  int64_t first;

  int64_t offset(int r) const { return (first + r) * g.y_stride; }

  template <class T>
  [[gnu::always_inline]] void prefetch_rows(const T* from, bool written) const {
    constexpr auto kLine = static_cast<int>(64 / sizeof(T));
    if (!from) return;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < P * kColumns; i += kLine) {
        const T* const at = from + offset(r) + i;
        written ? __builtin_prefetch(at, 1) : __builtin_prefetch(at);
      }
  }
  // Prefetches what the epilogue reads and writes, all at once: by halves, short rows took up to 12 % longer.
  [[gnu::always_inline]] void prefetch_all() const {
    prefetch_rows(g.y.bytes, true);
    prefetch_rows(g.y.floats, true);
    prefetch_rows(g.end.residual_bytes, false);
    prefetch_rows(g.end.residual, false);
  }

  bool all_columns() const { return g.valid >= P * kColumns && requantize_row_applies(g.end, g.y); }

  [[gnu::always_inline]] void store_rows(const IntSums<R, P>& sum) const {
    const int64_t begin = offset(0), stride = g.y_stride;  // copies, as those of RequantizeRow
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel)
      with_requantize_row(
          g.end, g.y, panel * kColumns, [&](const auto& finish_row) __attribute__((always_inline)) {
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) finish_row(begin + r * stride, sum[r][2 * panel], sum[r][2 * panel + 1]);
          });
  }
  // Only the valid columns.
  [[gnu::noinline]] void store_valid_columns(const IntSums<R, P>& sum) const {
    for (int panel = 0; panel < P; ++panel)
      for (int r = 0; r < R; ++r)
        finish_partial_row(g.end, panel * kColumns, offset(r), g.valid, sum[r][2 * panel], sum[r][2 * panel + 1], g.y);
  }
};

}  // namespace dtrain::cpu::DT_ISA
