// What is done to a row of a tile of sums of bytes before it is stored; see ByteEnd.
#pragma once

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/gemm_u8s8.h"

namespace dtrain::cpu::DT_ISA {

// Where the elements of a vector of one row are, and their columns.
struct Place {
  const uint8_t* residual_bytes;
  const float* residual;
  uint8_t* y_bytes;
  float* y;
  int64_t column;

  Place(const Requantize& end, const RequantizeOutput& to, int64_t at, int64_t first)
      : residual_bytes(end.residual_bytes ? end.residual_bytes + at : nullptr),
        residual(end.residual ? end.residual + at : nullptr),
        y_bytes(to.bytes ? to.bytes + at : nullptr),
        y(to.floats ? to.floats + at : nullptr),
        column(first) {}
};

[[gnu::always_inline]] inline void end_vector(const Ints& sum, const Requantize& end, const Place& at) {
  Floats value = multiply_add(to_floats(sum), load(end.scale + at.column), load(end.shift + at.column));
  const Floats factor = end.residual_scale - Floats{};
  if (at.residual_bytes) value = multiply_add(bytes_to_floats(at.residual_bytes), factor, value);
  if (at.residual) value = multiply_add(load(at.residual), factor, value);
  const Floats floor = end.floor - Floats{};
  value = value < floor ? floor : value;  // lets a NaN through
  if (at.y_bytes)
    store_bytes(at.y_bytes, value);
  else
    store(at.y, value);
}

// Ends the first `valid` lanes of a vector, by way of memory that has room for all.
[[gnu::noinline]] inline void finish_lanes(const Ints& sum, const Requantize& end, Place at, int64_t valid) {
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
  end_vector(sum, end, at);
  for (int64_t i = 0; i < valid; ++i) {
    if (to_bytes) to_bytes[i] = y_bytes[i];
    if (to) to[i] = y[i];
  }
}

// The columns from `column` on, where two vectors begin, of the row at `at`, up to the first `valid` ones.
[[gnu::always_inline]] inline void finish_partial_row(const Requantize& end, int64_t column, int64_t at, int64_t valid,
                                                   const Ints& low, const Ints& high, const RequantizeOutput& y) {
  const int64_t left = valid - column, after = left - kLanes;
  if (left > 0) finish_lanes(low, end, Place(end, y, at + column, column), left < kLanes ? left : kLanes);
  column += kLanes;
  if (after > 0) finish_lanes(high, end, Place(end, y, at + column, column), after < kLanes ? after : kLanes);
}

enum class Residual { none, bytes, floats };

// Whether ByteRowEnd does all that is asked for: it gives bytes no other floor than 0.
[[gnu::always_inline]] inline bool fast_requantize_suffices(const Requantize& end, const RequantizeOutput& y) {
  return !y.bytes || !(end.floor > 0);
}

// The two vectors of columns from `column` on; keeps what does not differ between rows in registers.
template <Residual kResidual, bool kBytes>
class RequantizeRow {
 public:
  [[gnu::always_inline]] RequantizeRow(const Requantize& end, const RequantizeOutput& to, int64_t column)
      : residual_bytes_(kResidual == Residual::bytes ? end.residual_bytes + column : nullptr),
        residual_(kResidual == Residual::floats ? end.residual + column : nullptr),
        y_bytes_(kBytes ? to.bytes + column : nullptr),
        y_(kBytes ? nullptr : to.floats + column),
        factor_(end.residual_scale - Floats{}),
        floor_(end.floor - Floats{}),
        scale_{load(end.scale + column), load(end.scale + column + kLanes)},
        shift_{load(end.shift + column), load(end.shift + column + kLanes)} {}

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

  // Copies: what is stored as bytes might be any object, so that those of `end` would be read again for each row.
  const uint8_t* residual_bytes_;
  const float* residual_;
  uint8_t* y_bytes_;
  float* y_;
  Floats factor_, floor_, scale_[2], shift_[2];
};

// Calls use(end of a row) with the ByteRowEnd for what there is.
template <Residual kResidual, class Use>
[[gnu::always_inline]] inline void with_residual(const Requantize& end, const RequantizeOutput& y, int64_t column,
                                                 const Use& use) {
  if (y.bytes)
    use(RequantizeRow<kResidual, true>(end, y, column));
  else
    use(RequantizeRow<kResidual, false>(end, y, column));
}
template <class Use>
[[gnu::always_inline]] inline void with_requantize_row(const Requantize& end, const RequantizeOutput& y, int64_t column,
                                                const Use& use) {
  if (end.residual_bytes)
    with_residual<Residual::bytes>(end, y, column, use);
  else if (end.residual)
    with_residual<Residual::floats>(end, y, column, use);
  else
    with_residual<Residual::none>(end, y, column, use);
}

}  // namespace dtrain::cpu::DT_ISA
