#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/vectors.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int kColumns = 2 * kLanes;
// Twice as many accumulators, two vectors of the panel and one of `a` fit the registers: 16, or 32 of AVX-512.
constexpr int kRows = kLanes == 16 ? 12 : 6;

constexpr int64_t kPiece = 32;  // products of an element between prefetches
constexpr int64_t kLine = 16;   // floats

template <int R>
using Sums = Floats[R][2];

// The arithmetic of panels of words of 32 bits: of floats, or of pairs of bf16 whose products go into one sum.
struct OfFloats {
  using Word = float;
  [[gnu::always_inline]] static Floats words(const float* from) { return load(from); }
  [[gnu::always_inline]] static Floats broadcast(float word) { return word - Floats{}; }
  [[gnu::always_inline]] static void add_products(Floats& sum, Floats a, Floats b) { sum += a * b; }
};
#ifdef __AVX512BF16__
struct OfPairs {
  using Word = Bf16Pair;
  [[gnu::always_inline]] static __m512bh words(const Bf16Pair* from) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
  }
  [[gnu::always_inline]] static __m512bh broadcast(Bf16Pair word) {
    __m512i words = _mm512_set1_epi32(static_cast<int>(word.bits));
#ifdef __clang__
    asm("" : "+v"(words));  // Clang 16 never ends where it may make this a broadcast of bf16
#endif
    return reinterpret_cast<__m512bh>(words);
  }
  [[gnu::always_inline]] static void add_products(Floats& sum, __m512bh a, __m512bh b) {
    sum = reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), a, b));
  }
};
#endif

// sum[r] += the product of row r, whose words are `step` apart, and the panel.
template <int R, class Arithmetic = OfFloats>
[[gnu::always_inline]] inline void accumulate(const typename Arithmetic::Word* const (&at)[R], int64_t step, int64_t k,
                                              const typename Arithmetic::Word* panel, Sums<R>& sum) {
  for (int64_t p = 0; p < k; ++p, panel += kColumns) {
    const auto b0 = Arithmetic::words(panel), b1 = Arithmetic::words(panel + kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const auto value = Arithmetic::broadcast(at[r][p * step]);
      Arithmetic::add_products(sum[r][0], value, b0);
      Arithmetic::add_products(sum[r][1], value, b1);
    }
  }
}

template <int R>
[[gnu::always_inline]] inline void store_sums(const Sums<R>& sum, float* y, int64_t stride, bool add) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r, y += stride) {
    store(y, add ? load(y) + sum[r][0] : sum[r][0]);
    store(y + kLanes, add ? load(y + kLanes) + sum[r][1] : sum[r][1]);
  }
}

// One tile of R rows that are `stride` apart and whose words are `step` apart.
template <class Arithmetic = OfFloats>
struct Strided {
  int64_t k;
  const typename Arithmetic::Word* a;
  int64_t stride, step;
  const typename Arithmetic::Word* panel;
  float* y;
  int64_t y_stride;
  bool add;
};

// `kPacked`: the rows are columns of a panel.
template <int R, bool kPacked, class Arithmetic>
void strided_tile(const Strided<Arithmetic>& t) {
  const int64_t stride = kPacked ? 1 : t.stride, step = kPacked ? kColumns : 1;
  const typename Arithmetic::Word* at[R];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) at[r] = t.a + r * stride;
  Sums<R> sum = {};
  accumulate<R, Arithmetic>(at, step, t.k, t.panel, sum);
  store_sums<R>(sum, t.y, t.y_stride, t.add);
}

// The first `valid` lanes of a vector of one row, ended and stored.
[[gnu::noinline]] void end_lanes(const Floats& value, const ProductEnd& end, int64_t column, int64_t at, int64_t valid,
                                 float* y) {
  float lanes[kLanes];
  store(lanes, value);
  for (int64_t i = 0; i < valid; ++i) {
    float one = lanes[i];
    if (end.bias) one += end.bias[column + i];
    if (end.residual) one += end.residual[at + i];
    y[at + i] = end.relu && one < 0 ? 0 : one;
  }
}

[[gnu::always_inline]] inline void end_vector(Floats value, const ProductEnd& end, int64_t column, int64_t at,
                                              float* y) {
  if (end.bias) value += load(end.bias + column);
  if (end.residual) value += load(end.residual + at);
  if (end.relu) value = value < 0 ? Floats{} : value;  // lets a NaN through
  store(y + at, value);
}

template <int R>
void gathered_tile(const GatheredRows& g) {
  Sums<R> sum = {};
  const float* const* tap = g.at;
  const float* panel = g.panel;
  // Prefetches are spread over the products, so that they wait for no free buffer.
  const int64_t pieces = g.taps * ((g.k + kPiece - 1) / kPiece);
  const int64_t ahead_step = (g.ahead_count / kLine + pieces - 1) / pieces * kLine;
  const float* ahead = g.ahead;
  const float* const ahead_end = g.ahead + g.ahead_count;
  for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
    const float* at[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] = tap[r];
    for (int64_t done = 0; done < g.k; done += kPiece) {
      const int64_t piece = g.k - done < kPiece ? g.k - done : kPiece;
      for (const float* const last = ahead + ahead_step; ahead < last && ahead < ahead_end; ahead += kLine)
        __builtin_prefetch(ahead, 0, 2);
      accumulate<R>(at, 1, piece, panel, sum);
      panel += piece * kColumns;
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) at[r] += piece;
    }
  }
  const bool whole = g.valid == kColumns;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const int64_t at = r * g.y_stride;
    if (whole) {
      end_vector(sum[r][0], g.end, 0, at, g.y);
      end_vector(sum[r][1], g.end, kLanes, at + kLanes, g.y);
    } else {
      end_lanes(sum[r][0], g.end, 0, at, g.valid < kLanes ? g.valid : kLanes, g.y);
      end_lanes(sum[r][1], g.end, kLanes, at + kLanes, g.valid - kLanes, g.y);
    }
  }
}

// Calls tile.operator()<R>() for R = rows, at most kRows.
template <class Tile, int R = kRows>
[[gnu::always_inline]] inline void with_rows(int64_t rows, const Tile& tile) {
  if (rows == R)
    tile.template operator()<R>();
  else if constexpr (R > 1)
    with_rows<Tile, R - 1>(rows, tile);
}

template <bool kPacked, class Arithmetic>
void strided_rows(int64_t rows, Strided<Arithmetic> t) {
  for (; rows > 0; rows -= kRows, t.a += kRows * (kPacked ? 1 : t.stride), t.y += kRows * t.y_stride)
    with_rows(rows < kRows ? rows : kRows, [&]<int R>() { strided_tile<R, kPacked>(t); });
}

void rows_by_panel(int64_t rows, int64_t k, const float* a, int64_t a_stride, const float* panel, float* y,
                   int64_t y_stride, bool add) {
  strided_rows<false, OfFloats>(rows, {k, a, a_stride, 1, panel, y, y_stride, add});
}

void panel_by_panel(int64_t k, const float* a, const float* b, float* y, int64_t y_stride, bool add) {
  strided_rows<true, OfFloats>(kColumns, {k, a, 1, kColumns, b, y, y_stride, add});
}

#ifdef __AVX512BF16__
void pairs_by_pairs(int64_t k, const Bf16Pair* a, const Bf16Pair* b, float* y, int64_t y_stride, bool add) {
  strided_rows<true, OfPairs>(kColumns, {k, a, 1, kColumns, b, y, y_stride, add});
}

void join_pairs(const Bf16* first, const Bf16* second, int64_t count, Bf16Pair* to, int64_t step) {
  constexpr uint16_t kFirst = 0, kSecond = 32;  // of the 64 elements that two vectors hold
  uint16_t low[32], high[32];
  for (uint16_t i = 0; i < 16; ++i) {
    low[2 * i] = kFirst + i, low[2 * i + 1] = kSecond + i;
    high[2 * i] = kFirst + 16 + i, high[2 * i + 1] = kSecond + 16 + i;
  }
  const __m512i at_low = _mm512_loadu_si512(low), at_high = _mm512_loadu_si512(high);
  for (int64_t i = 0; i < count; i += kColumns, to += step) {
    const __m512i a = _mm512_loadu_si512(first + i), b = _mm512_loadu_si512(second + i);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, at_low, b));
    _mm512_storeu_si512(to + kLanes, _mm512_permutex2var_epi16(a, at_high, b));
  }
}
#endif

void gathered_rows(const GatheredRows& g) {
  with_rows(g.rows, [&]<int R>() { gathered_tile<R>(g); });
}

}  // namespace

ProductKernels product_kernels() {
  ProductKernels kernels{kRows, kColumns, rows_by_panel, panel_by_panel, gathered_rows};
#ifdef __AVX512BF16__
  kernels.pairs_by_pairs = pairs_by_pairs;
  kernels.join_pairs = join_pairs;
#endif
  return kernels;
}

}  // namespace dtrain::cpu::DT_ISA
