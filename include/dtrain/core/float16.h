// Bf16 and conversions: storage types of 16 bits. Arithmetic is in f32.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

namespace dtrain {

// Upper half of an f32: 8 bits of precision, one of them implicit.
struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  // From raw bits. Numbers are converted by to_bf16().
  explicit constexpr Bf16(uint16_t its_bits) : bits(its_bits) {}
  template <class Number>
  requires(!std::same_as<Number, uint16_t>) explicit Bf16(Number) = delete;

  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// Rounds to nearest, ties to even; a NaN stays one.
inline Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  // Rounding bias: half a unit in the last place, less one if that place is even.
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return Bf16(static_cast<uint16_t>((std::isnan(x) ? bits | 0x400000u : rounded) >> 16));
}

// Whether a CPU kernel supports bf16 natively. The others get f32 copies of bf16 tensors; results are rounded, see
// widened.h.
template <auto kernel>
inline constexpr bool takes_bf16 = false;

}  // namespace dtrain
