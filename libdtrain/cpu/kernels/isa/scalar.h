// The instruction set `scalar`: 16 lanes in plain C++, with the semantics of AVX512_VNNI, AVX512_BF16 and AMX, so that
// every micro-kernel runs on any machine.
#pragma once

#include "libdtrain/cpu/kernels/isa/tile_config.h"
#include "libdtrain/cpu/kernels/isa/vector.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kLanes = 16, kRegisters = 16;
using Floats = VectorOf<kLanes>::Type;
using Pairs = VectorOf<kLanes>::Bits;
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));

[[gnu::always_inline]] inline VectorOf<8>::Bits widen(VectorOf<8>::Halves halves) {
  return __builtin_convertvector(halves, VectorOf<8>::Bits);
}
[[gnu::always_inline]] inline VectorOf<16>::Bits widen(VectorOf<16>::Halves halves) {
  return __builtin_convertvector(halves, VectorOf<16>::Bits);
}
[[gnu::always_inline]] inline VectorOf<kLanes>::Bits widen_bytes(const uint8_t* from) {
  VectorOf<kLanes>::Bits words{};
  for (int i = 0; i < kLanes; ++i) words[i] = from[i];
  return words;
}
[[gnu::always_inline]] inline Ints load_ints(const void* from) {
  Ints ints;
  std::memcpy(&ints, from, sizeof ints);
  return ints;
}
[[gnu::always_inline]] inline Ints broadcast(int32_t x) { return Ints{} + x; }
[[gnu::always_inline]] inline Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) {
  Floats sum{};
  for (int i = 0; i < kLanes; ++i) sum[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return sum;
}
[[gnu::always_inline]] inline Floats bytes_to_floats(const uint8_t* from) {
  return __builtin_convertvector(widen_bytes(from), Floats);
}

// Rounds to nearest, ties to even, and saturates to 0 ... 255; a NaN becomes 0.
inline void store_bytes(uint8_t* to, Floats value) {
  for (int i = 0; i < kLanes; ++i)
    to[i] = value[i] > 0 ? static_cast<uint8_t>(__builtin_rintf(value[i] < kMaxByte ? value[i] : kMaxByte)) : 0;
}
inline void store_bytes(uint8_t* to, Floats first, Floats second) {
  store_bytes(to, first);
  store_bytes(to + kLanes, second);
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

[[gnu::always_inline]] inline Pairs load_pairs(const void* from) {
  Pairs pairs;
  std::memcpy(&pairs, from, sizeof pairs);
  return pairs;
}
[[gnu::always_inline]] inline Pairs broadcast_pair(const void* from) {
  uint32_t pair;
  std::memcpy(&pair, from, sizeof pair);
  return Pairs{} + pair;
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
[[gnu::always_inline]] inline void keep(Floats& value) { asm("" : "+m"(value)); }

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
// TDPBF16PS: the products of first and of second elements are summed apart, from zero.
template <int tile>
void tile_dot_bf16() {
  for (int row = 0; row < tiles.config.rows[tile]; ++row) {
    Floats first{}, second{};
    for (int word = 0; word < tiles.config.rows[5]; ++word) {
      const Pairs a = broadcast_pair(&tiles.words[4][row][word]), b = load_pairs(tiles.words[5][word]);
      first = multiply_add_flushed(first_of(a), first_of(b), first);
      second = multiply_add_flushed(second_of(a), second_of(b), second);
    }
    const Floats before = flush_subnormals(as_floats(load_pairs(tiles.words[tile][row])));
    const Floats sum = flush_subnormals(before + flush_subnormals(first + second));
    std::memcpy(tiles.words[tile][row], &sum, sizeof sum);
  }
}
// TDPBUSD.
template <int tile>
void tile_dot_u8s8() {
  for (int row = 0; row < tiles.config.rows[tile]; ++row) {
    Ints sum = load_ints(tiles.words[tile][row]);
    for (int word = 0; word < tiles.config.rows[5]; ++word)
      sum = dot_quads(sum, broadcast(static_cast<int32_t>(tiles.words[4][row][word])), load_ints(tiles.words[5][word]));
    std::memcpy(tiles.words[tile][row], &sum, sizeof sum);
  }
}

}  // namespace dtrain::cpu::DT_ISA
