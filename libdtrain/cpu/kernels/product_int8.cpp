#include "libdtrain/cpu/kernels/product_int8.h"

#include "libdtrain/cpu/kernels/ahead.h"
#include "libdtrain/cpu/kernels/byte_end.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/vectors.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int kColumns = 2 * kLanes;
constexpr int64_t kPiece = 64;  // bytes of a run between prefetches

#ifdef __AVX512VNNI__
// Twice as many accumulators, two vectors of the panel and one of a row fit 32 registers.
constexpr int kRows = 12;

// Quads of a vector of filters as products take them.
struct Filters {
  Ints quads;
  explicit Filters(const int8_t* from) : quads(load_ints(from)) {}
};
struct Activations {
  Ints quads;
  explicit Activations(int32_t quad) : quads(all_of(quad)) {}
};
[[gnu::always_inline]] inline Ints add_products(Ints sum, const Activations& a, const Filters& b) {
  return _mm512_dpbusd_epi32(sum, a.quads, b.quads);
}
#else
// Bytes are widened to 16 bits, whose pairs of products are added without overflow: those of 8 bits would saturate. The
// bytes of a quad at even places and those at odd ones are apart, in filters as in activations.
#ifdef __AVX512F__
constexpr int kRows = 10;
[[gnu::always_inline]] inline Ints low_bytes(Ints x) { return _mm512_and_si512(x, _mm512_set1_epi32(0x00ff00ff)); }
[[gnu::always_inline]] inline Ints high_bytes(Ints x) { return _mm512_srli_epi16(x, 8); }
[[gnu::always_inline]] inline Ints low_signed(Ints x) { return _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8); }
[[gnu::always_inline]] inline Ints high_signed(Ints x) { return _mm512_srai_epi16(x, 8); }
[[gnu::always_inline]] inline Ints pairs(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }
[[gnu::always_inline]] inline Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
#else
constexpr int kRows = 4;
[[gnu::always_inline]] inline Ints low_bytes(Ints x) { return _mm256_and_si256(x, _mm256_set1_epi32(0x00ff00ff)); }
[[gnu::always_inline]] inline Ints high_bytes(Ints x) { return _mm256_srli_epi16(x, 8); }
[[gnu::always_inline]] inline Ints low_signed(Ints x) { return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8); }
[[gnu::always_inline]] inline Ints high_signed(Ints x) { return _mm256_srai_epi16(x, 8); }
[[gnu::always_inline]] inline Ints pairs(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }
[[gnu::always_inline]] inline Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
#endif

struct Filters {
  Ints low, high;
  explicit Filters(const int8_t* from) : low(low_signed(load_ints(from))), high(high_signed(load_ints(from))) {}
};
struct Activations {
  Ints low, high;
  explicit Activations(int32_t quad) : low(low_bytes(all_of(quad))), high(high_bytes(all_of(quad))) {}
};
[[gnu::always_inline]] inline Ints add_products(Ints sum, const Activations& a, const Filters& b) {
  return add(sum, add(pairs(a.low, b.low), pairs(a.high, b.high)));
}
#endif

template <int R>
using Sums = Ints[R][2];

// sum[r] += the product of `k` bytes of row r and the panel.
template <int R>
[[gnu::always_inline]] inline void accumulate(const uint8_t* const (&at)[R], int64_t k, const int8_t* panel,
                                              Sums<R>& sum) {
  for (int64_t p = 0; p < k; p += kQuad, panel += kQuad * kColumns) {
    const Filters b0(panel), b1(panel + kQuad * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int32_t quad;
      std::memcpy(&quad, at[r] + p, sizeof quad);
      const Activations a(quad);
      sum[r][0] = add_products(sum[r][0], a, b0);
      sum[r][1] = add_products(sum[r][1], a, b1);
    }
  }
}

template <int R>
[[gnu::always_inline]] inline void end_rows(const GatheredBytes& g, const Sums<R>& sum) {
  with_row_end(
      g.end, g.y, [&](const auto& end) __attribute__((always_inline)) {
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) end(r * g.y_stride, sum[r][0], sum[r][1]);
      });
}

template <int R>
[[gnu::noinline]] void end_part_of_rows(const GatheredBytes& g, const Sums<R>& sum) {
  for (int r = 0; r < R; ++r) end_part_of_row(g.end, r * g.y_stride, g.valid, sum[r][0], sum[r][1], g.y);
}

// Lines that are only reached at the end come while the sums are made.
template <int R>
[[gnu::always_inline]] inline void fetch_ends(const GatheredBytes& g) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const int64_t at = r * g.y_stride;
    if (g.y.bytes)
      __builtin_prefetch(g.y.bytes + at, 1);
    else
      __builtin_prefetch(g.y.floats + at, 1);
    if (g.end.residual_bytes) __builtin_prefetch(g.end.residual_bytes + at);
    if (g.end.residual) __builtin_prefetch(g.end.residual + at);
  }
}

template <int R>
void gathered_tile(const GatheredBytes& g) {
  fetch_ends<R>(g);
  Sums<R> sum;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = Ints{};
  const uint8_t* const* tap = g.at;
  const int8_t* panel = g.panel;
  const int64_t pieces = g.taps * ((g.k + kPiece - 1) / kPiece);
  Ahead ahead(g.upcoming, pieces);
  for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
    const uint8_t* at[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] = tap[r];
    for (int64_t done = 0; done < g.k; done += kPiece) {
      const int64_t piece = g.k - done < kPiece ? g.k - done : kPiece;
      ahead.fetch();
      accumulate<R>(at, piece, panel, sum);
      panel += piece * kColumns;
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) at[r] += piece;
    }
  }
  if (g.valid == kColumns) {
    end_rows<R>(g, sum);
    return;
  }
  Sums<R> copy;  // so that those above have no address and stay in registers
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) copy[r][0] = sum[r][0], copy[r][1] = sum[r][1];
  end_part_of_rows<R>(g, copy);
}

template <int R = kRows>
void rows_of_tile(const GatheredBytes& g) {
  if (g.rows == R)
    gathered_tile<R>(g);
  else if constexpr (R > 1)
    rows_of_tile<R - 1>(g);
}

void quantize(int64_t count, const float* x, float scale, float zero, uint8_t* to) {
  const Floats factor = scale - Floats{}, summand = zero - Floats{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_bytes(to + i, multiply_add(load(x + i), factor, summand));
  if (i == count) return;
  float rest[kLanes] = {};
  uint8_t bytes[kLanes];
  for (int64_t j = i; j < count; ++j) rest[j - i] = x[j];
  store_bytes(bytes, multiply_add(load(rest), factor, summand));
  for (int64_t j = i; j < count; ++j) to[j] = bytes[j - i];
}

}  // namespace

ByteProductKernels byte_product_kernels() { return {kRows, kColumns, rows_of_tile<>, quantize}; }

}  // namespace dtrain::cpu::DT_ISA
