// The instruction set `scalar`: 16 lanes in plain C++, with the semantics of AVX512_VNNI, AVX512_BF16 and AMX, so that
// every micro-kernel runs on any machine.
#pragma once

#include <type_traits>

#include "libdtrain/cpu/kernels/isa/tile_config.h"
#include "libdtrain/cpu/kernels/isa/vector.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kLanes = 16, kRegisters = 16;
using Floats = VectorOf<kLanes>::Type;
using Pairs = VectorOf<kLanes>::Bits;
using Ints = VectorOf<kLanes>::Ints;

[[gnu::always_inline]] inline Ints widen_bytes(const uint8_t* from) {
  Ints words{};
  for (int i = 0; i < kLanes; ++i) words[i] = from[i];
  return words;
}
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) {
  Floats sum{};
  for (int i = 0; i < kLanes; ++i) sum[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return sum;
}

// Rounds to nearest, ties to even, and saturates to 0 ... 255; a NaN becomes 0.
inline void store(uint8_t* to, Floats value) {
  for (int i = 0; i < kLanes; ++i)
    to[i] = value[i] > 0 ? static_cast<uint8_t>(__builtin_rintf(value[i] < kMaxByte ? value[i] : kMaxByte)) : 0;
}

// VPDPBUSD: sum + the dot products of quads of unsigned and signed bytes.
inline constexpr int kMaxPairSum = 254;
inline Ints dot_quads(Ints sum, Ints a, Ints b) {
  for (int shift = 0; shift < 32; shift += 8) sum += (a >> shift & 0xff) * (b << (24 - shift) >> 24);
  return sum;
}

[[gnu::always_inline]] inline Floats as_floats(Pairs bits) { return reinterpret_cast<Floats>(bits); }
[[gnu::always_inline]] inline Floats flush_subnormals(Floats x) {
  const auto bits = reinterpret_cast<Pairs>(x);
  return as_floats((bits & 0x7f800000u) == 0u ? bits & 0x80000000u : bits);
}
// a * b + c as bf16 instructions compute it: rounded once, to nearest; subnormal operands and results are zero.
[[gnu::always_inline]] inline Floats multiply_add_flushed(Floats a, Floats b, Floats c) {
  return flush_subnormals(flush_subnormals(a) * flush_subnormals(b) + flush_subnormals(c));
}
[[gnu::always_inline]] inline Floats first_of(Pairs pairs) { return as_floats(pairs << 16); }
[[gnu::always_inline]] inline Floats second_of(Pairs pairs) { return as_floats(pairs & 0xffff0000u); }

[[gnu::always_inline]] inline Pairs broadcast_pair(const void* from) {
  return Pairs{} + load_unaligned<uint32_t>(from);
}
// VDPBF16PS: sum + the dot products of pairs, the second elements first.
inline Floats dot_pairs(Floats sum, Pairs a, Pairs b) {
  return multiply_add_flushed(first_of(a), first_of(b), multiply_add_flushed(second_of(a), second_of(b), sum));
}
// The pairs (first[i], second[i]) of 32 elements each.
struct PairInterleaver {
  void operator()(const Bf16* first, const Bf16* second, void* to) const {
    for (int i = 0; i < 2 * kLanes; ++i) {
      const Bf16 pair[2] = {first[i], second[i]};
      std::memcpy(static_cast<char*>(to) + i * sizeof pair, pair, sizeof pair);
    }
  }
};

// There are no non-temporal stores, and nothing to wait for.
template <size_t bytes>
[[gnu::always_inline]] inline void stream_bytes(void* to, const void* aligned) {
  std::memcpy(to, aligned, bytes);
}
inline void fence() {}
template <class V>
[[gnu::always_inline]] inline void keep(V& value) {
  asm("" : "+m"(value));
}

// Transposes 16 x 16 words; rows are `from_stride` and `to_stride` words apart.
inline void transpose_16x16(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  for (int row = 0; row < kLanes; ++row)
    for (int column = 0; column < kLanes; ++column) to[column * to_stride + row] = from[row * from_stride + column];
}

// The tile registers of a thread.
struct Tiles {
  TileConfig config{};
  uint32_t words[8][kTileRows][kTileWords] = {};
};
inline constinit thread_local Tiles tiles;

inline void tile_configure(const TileConfig& config) { tiles.config = config; }
inline void tile_release() { tiles.config = {}; }
template <int tile>
void tile_zero() {
  std::memset(tiles.words[tile], 0, sizeof tiles.words[tile]);
}
// Rows are `stride` bytes apart.
template <int tile>
void tile_load(const void* from, int64_t stride) {
  for (int row = 0; row < tiles.config.rows[tile]; ++row)
    std::memcpy(tiles.words[tile][row], static_cast<const char*>(from) + row * stride, tiles.config.row_bytes[tile]);
}
template <int tile>
void tile_store(void* to, int64_t stride) {
  for (int row = 0; row < tiles.config.rows[tile]; ++row)
    std::memcpy(static_cast<char*>(to) + row * stride, tiles.words[tile][row], tiles.config.row_bytes[tile]);
}
// sum + one row of tile 4 times tile 5. TDPBF16PS adds the products of first and of second elements apart, from zero.
inline Floats dot_tile_row(const uint32_t* a_row, Floats sum, Bf16) {
  Floats first{}, second{};
  for (int word = 0; word < tiles.config.rows[5]; ++word) {
    const auto a = broadcast_pair(a_row + word), b = load_unaligned<Pairs>(tiles.words[5][word]);
    first = multiply_add_flushed(first_of(a), first_of(b), first);
    second = multiply_add_flushed(second_of(a), second_of(b), second);
  }
  return flush_subnormals(flush_subnormals(sum) + flush_subnormals(first + second));
}
// TDPBUSD
inline Ints dot_tile_row(const uint32_t* a_row, Ints sum, uint8_t) {
  for (int word = 0; word < tiles.config.rows[5]; ++word)
    sum = dot_quads(sum, Ints{} + static_cast<int32_t>(a_row[word]), load_unaligned<Ints>(tiles.words[5][word]));
  return sum;
}
// Accumulator tile, 0 to 3, += tile 4 times tile 5: dot products of pairs of Bf16, or of quads of uint8_t and int8_t.
template <int tile, class T>
void tile_dot() {
  using Sums = std::conditional_t<std::is_same_v<T, Bf16>, Floats, Ints>;
  for (int row = 0; row < tiles.config.rows[tile]; ++row) {
    const Sums sum = dot_tile_row(tiles.words[4][row], load_unaligned<Sums>(tiles.words[tile][row]), T());
    std::memcpy(tiles.words[tile][row], &sum, sizeof sum);
  }
}

}  // namespace dtrain::cpu::DT_ISA
