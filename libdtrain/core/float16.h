// Numbers of 16 bits, as they are stored: arithmetic is in f32.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

namespace dtrain {

// The upper half of a float: eight bits of mantissa, the first of which is not stored.
struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  // Of its bits. A number is converted by to_bf16(): taken as bits it would be another.
  explicit constexpr Bf16(uint16_t its_bits) : bits(its_bits) {}
  template <class Number>
  requires(!std::same_as<Number, uint16_t>) explicit Bf16(Number) = delete;

  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// Rounds to nearest, ties to even; a NaN stays one.
inline Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  // Half of the last place, one less where that place is even.
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return Bf16(static_cast<uint16_t>((std::isnan(x) ? bits | 0x400000u : rounded) >> 16));
}

// Whether a kernel of a CPU arm computes with tensors of bf16 itself. The others are given copies in f32, and what they
// write is rounded: see widened.h.
template <auto kernel>
inline constexpr bool takes_bf16 = false;

}  // namespace dtrain
