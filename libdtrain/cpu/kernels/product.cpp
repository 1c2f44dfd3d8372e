#include "libdtrain/cpu/kernels/ahead.h"
#include "libdtrain/cpu/kernels/row_end.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/vectors.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int kColumns = 2 * kLanes;
// Twice as many accumulators, two vectors of the panel and one of `a` fit the registers: 16, or 32 of AVX-512.
constexpr int kRows = kLanes == 16 ? 12 : 6;

constexpr int64_t kPiece = 32;  // words of a row between prefetches

template <int R>
using Sums = Floats[R][2];

// The arithmetic of panels of words of 32 bits: of floats, or of pairs of bf16 whose products go into one sum.
struct OfFloats {
  using Word = float;
  [[gnu::always_inline]] static Floats words(const float* from) { return load(from); }
  [[gnu::always_inline]] static Floats broadcast(const float* word) { return *word - Floats{}; }
  [[gnu::always_inline]] static void add_products(Floats& sum, Floats a, Floats b) { sum += a * b; }
};
#ifdef __AVX512BF16__
struct OfPairs {
  using Word = Bf16Pair;
  [[gnu::always_inline]] static __m512bh words(const void* from) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
  }
  [[gnu::always_inline]] static __m512bh broadcast(const void* word) {
    int bits;
    std::memcpy(&bits, word, sizeof bits);
    __m512i words = _mm512_set1_epi32(bits);
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

template <class T>
struct ArithmeticOf {
  using Type = OfFloats;
};
#ifdef __AVX512BF16__
template <>
struct ArithmeticOf<Bf16> {
  using Type = OfPairs;
};
#endif

// sum[r] += the product of the `words` words of row r, which are `step` elements apart, and the panel. A word is
// `joined` elements of T.
template <int R, class Arithmetic, int64_t joined, class T>
[[gnu::always_inline]] inline void accumulate(const T* const (&at)[R], int64_t step, int64_t words, const T* panel,
                                              Sums<R>& sum) {
  for (int64_t p = 0; p < words; ++p, panel += joined * kColumns) {
    const auto b0 = Arithmetic::words(panel), b1 = Arithmetic::words(panel + joined * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const auto value = Arithmetic::broadcast(at[r] + p * step);
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
void strided_tile(const Strided<Arithmetic>& t, Ahead& ahead) {
  const int64_t stride = kPacked ? 1 : t.stride, step = kPacked ? kColumns : 1;
  const typename Arithmetic::Word* at[R];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) at[r] = t.a + r * stride;
  Sums<R> sum = {};
  const typename Arithmetic::Word* panel = t.panel;
  for (int64_t done = 0; done < t.k; done += kPiece) {
    const int64_t piece = t.k - done < kPiece ? t.k - done : kPiece;
    ahead.fetch();
    accumulate<R, Arithmetic, 1>(at, step, piece, panel, sum);
    panel += piece * kColumns;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] += piece * step;
  }
  store_sums<R>(sum, t.y, t.y_stride, t.add);
}

// Ends all columns of the rows.
template <int R, bool kStreams, class T>
[[gnu::always_inline]] inline void end_rows(const GatheredRows<T>& g, const Sums<R>& sum) {
  const RowBias bias(g.end);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) end_row<kStreams>(g.end, bias, r * g.y_stride, sum[r][0], sum[r][1], g.y);
}

template <int R, class T>
[[gnu::noinline]] void end_part_of_rows(const GatheredRows<T>& g, const Sums<R>& sum) {
  for (int r = 0; r < R; ++r) end_part_of_row(g.end, r * g.y_stride, g.valid, sum[r][0], sum[r][1], g.y);
}

template <int R, class T>
void gathered_tile(const GatheredRows<T>& g) {
  using Arithmetic = typename ArithmeticOf<T>::Type;
  constexpr int64_t kElements = kPiece * kJoined<T>;
  Sums<R> sum = {};
  const T* const* tap = g.at;
  const T* panel = g.panel;
  // Lines that are only reached at the end come while the sums are made.
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    if (!g.streams) __builtin_prefetch(g.y + r * g.y_stride, 1);
    if (g.end.residual) __builtin_prefetch(g.end.residual + r * g.y_stride);
  }
  Ahead ahead(g.upcoming, g.taps * ((g.k + kElements - 1) / kElements));
  for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
    const T* at[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] = tap[r];
    for (int64_t done = 0; done < g.k; done += kElements) {
      const int64_t piece = g.k - done < kElements ? g.k - done : kElements;
      ahead.fetch();
      accumulate<R, Arithmetic, kJoined<T>>(at, kJoined<T>, piece / kJoined<T>, panel, sum);
      panel += piece * kColumns;
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) at[r] += piece;
    }
  }
  if (g.valid == kColumns) {
    g.streams ? end_rows<R, true>(g, sum) : end_rows<R, false>(g, sum);
    return;
  }
  Sums<R> copy;  // so that those above have no address and stay in registers
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) copy[r][0] = sum[r][0], copy[r][1] = sum[r][1];
  end_part_of_rows<R>(g, copy);
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
void strided_rows(int64_t rows, Strided<Arithmetic> t, const Upcoming& upcoming = {}) {
  Ahead ahead(upcoming, (rows + kRows - 1) / kRows * ((t.k + kPiece - 1) / kPiece));
  for (; rows > 0; rows -= kRows, t.a += kRows * (kPacked ? 1 : t.stride), t.y += kRows * t.y_stride)
    with_rows(rows < kRows ? rows : kRows, [&]<int R>() { strided_tile<R, kPacked>(t, ahead); });
}

void rows_by_panel(int64_t rows, int64_t k, const float* a, int64_t a_stride, const float* panel, float* y,
                   int64_t y_stride, bool add) {
  strided_rows<false, OfFloats>(rows, {k, a, a_stride, 1, panel, y, y_stride, add});
}

void panel_by_panel(int64_t k, const float* a, const float* b, float* y, int64_t y_stride, bool add,
                    const Upcoming& upcoming) {
  strided_rows<true, OfFloats>(kColumns, {k, a, 1, kColumns, b, y, y_stride, add}, upcoming);
}

#ifdef __AVX512BF16__
void pairs_by_pairs(int64_t k, const Bf16Pair* a, const Bf16Pair* b, float* y, int64_t y_stride, bool add,
                    const Upcoming& upcoming) {
  strided_rows<true, OfPairs>(kColumns, {k, a, 1, kColumns, b, y, y_stride, add}, upcoming);
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

// Transposes 8 x 8 words.
[[gnu::always_inline]] inline void transpose(__m256 (&v)[8]) {
  __m256 two[8], four[8];
  for (int i = 0; i < 8; i += 2) {
    two[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    two[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    four[i] = _mm256_shuffle_ps(two[i], two[i + 2], 0x44);
    four[i + 1] = _mm256_shuffle_ps(two[i], two[i + 2], 0xee);
    four[i + 2] = _mm256_shuffle_ps(two[i + 1], two[i + 3], 0x44);
    four[i + 3] = _mm256_shuffle_ps(two[i + 1], two[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
  }
}

void pack_rows(int64_t rows, int64_t words, const void* from, int64_t stride, void* panel) {
  constexpr int kBlock = 8;
  const auto at = [&](int64_t row, int64_t word) { return static_cast<const char*>(from) + row * stride + 4 * word; };
  float* const to = static_cast<float*>(panel);
  int64_t word = 0;
  for (; word + kBlock <= words; word += kBlock)
    for (int64_t row = 0; row < kColumns; row += kBlock) {
      __m256 block[kBlock];
#pragma GCC unroll 8
      for (int i = 0; i < kBlock; ++i)
        block[i] = row + i < rows ? _mm256_loadu_ps(reinterpret_cast<const float*>(at(row + i, word))) : __m256{};
      transpose(block);
#pragma GCC unroll 8
      for (int i = 0; i < kBlock; ++i) _mm256_storeu_ps(to + (word + i) * kColumns + row, block[i]);
    }
  for (; word < words; ++word)
    for (int64_t row = 0; row < kColumns; ++row) {
      if (row < rows)
        std::memcpy(to + word * kColumns + row, at(row, word), sizeof(float));
      else
        to[word * kColumns + row] = 0;
    }
}

template <class T>
void gathered_rows(const GatheredRows<T>& g) {
  with_rows(g.rows, [&]<int R>() { gathered_tile<R>(g); });
}

}  // namespace

ProductKernels product_kernels() {
  ProductKernels kernels{kRows, kColumns, rows_by_panel, panel_by_panel, gathered_rows<float>, pack_rows};
#ifdef __AVX512BF16__
  kernels.gathered_bf16_rows = gathered_rows<Bf16>;
  kernels.pairs_by_pairs = pairs_by_pairs;
  kernels.join_pairs = join_pairs;
#endif
  return kernels;
}

}  // namespace dtrain::cpu::DT_ISA
