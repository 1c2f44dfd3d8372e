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

// Gathered rows take two panels at a time where registers hold 4 vectors of columns: half as many rows then make as
// many sums with fewer loads.
constexpr int kPanels = kLanes == 16 ? 2 : 1;

// Of R rows and P panels.
template <int R, int P = 1>
using Sums = Floats[R][2 * P];

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

// sum[r] += the product of the `words` words of row r, which are `step` elements apart, and the panels, which are
// `panel_step` elements apart. A word is `joined` elements of T.
template <int R, class Arithmetic, int64_t joined, int P, class T>
[[gnu::always_inline]] inline void accumulate(const T* const (&at)[R], int64_t step, int64_t words, const T* panel,
                                              int64_t panel_step, Sums<R, P>& sum) {
#pragma GCC unroll 2  // the loop itself would take a slot of every tenth instruction; more have been slower
  for (int64_t p = 0; p < words; ++p, panel += joined * kColumns) {
    decltype(Arithmetic::words(panel)) b[2 * P];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) b[i] = Arithmetic::words(panel + i / 2 * panel_step + i % 2 * joined * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const auto value = Arithmetic::broadcast(at[r] + p * step);
#pragma GCC unroll 4
      for (int i = 0; i < 2 * P; ++i) Arithmetic::add_products(sum[r][i], value, b[i]);
    }
  }
}

template <int R, int P>
[[gnu::always_inline]] inline void store_sums(const Sums<R, P>& sum, float* y, int64_t stride, bool add) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r, y += stride)
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) {
      float* const to = y + i * kLanes;
      store(to, add ? load(to) + sum[r][i] : sum[r][i]);
    }
}

// R rows of `o` from the one at `a` on, which go to those at `y`. `kPacked`: they are columns of a panel.
template <int R, int P, bool kPacked, class Arithmetic>
void strided_tile(const RowsByPanels<typename Arithmetic::Word>& o, const typename Arithmetic::Word* a, float* y,
                  Ahead& ahead) {
  const int64_t stride = kPacked ? 1 : o.a_stride, step = kPacked ? kColumns : 1;
  const typename Arithmetic::Word* at[R];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) at[r] = a + r * stride;
  Sums<R, P> sum = {};
  const typename Arithmetic::Word* panel = o.panel;
  for (int64_t done = 0; done < o.k; done += kPiece) {
    const int64_t piece = o.k - done < kPiece ? o.k - done : kPiece;
    ahead.fetch();
    accumulate<R, Arithmetic, 1, P>(at, step, piece, panel, o.panel_step, sum);
    panel += piece * kColumns;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] += piece * step;
  }
  store_sums<R, P>(sum, y, o.y_stride, o.add);
}

// Rows [first, first + R) of those gathered, by P panels.
template <int R, int P, class T>
struct GatheredTile {
  const GatheredRows<T>& g;
  int64_t first;

  int64_t offset(int r) const { return g.places[first + r]; }
  RowBias bias(int panel) const { return RowBias(g.end.bias ? g.end.bias + panel * kColumns : nullptr); }

  // Lines that are only reached at the end come while the sums are made.
  [[gnu::always_inline]] void fetch_ends() const {
    constexpr auto kLine = static_cast<int>(64 / sizeof(T));
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int i = 0; i < P * kColumns; i += kLine) {
        if (!g.streams) __builtin_prefetch(g.y + offset(r) + i, 1);
        if (g.end.residual) __builtin_prefetch(g.end.residual + offset(r) + i);
      }
  }
  [[gnu::always_inline]] void add_products(Sums<R, P>& sum, Ahead& ahead) const {
    using Arithmetic = typename ArithmeticOf<T>::Type;
    constexpr int64_t kElements = kPiece * kJoined<T>;
    const T* const* tap = g.at + first;
    const T* panel = g.panel;
    for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
      const T* at[R];
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) at[r] = tap[r] + g.skip;
      for (int64_t done = 0; done < g.k; done += kElements) {
        const int64_t piece = g.k - done < kElements ? g.k - done : kElements;
        ahead.fetch();
        accumulate<R, Arithmetic, kJoined<T>, P>(at, kJoined<T>, piece / kJoined<T>, panel, g.panel_step, sum);
        panel += piece * kColumns;
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) at[r] += piece;
      }
    }
  }
  template <bool kStreams>
  [[gnu::always_inline]] void end_rows(const Sums<R, P>& sum) const {
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel) {
      const RowBias own = bias(panel);
      RowSums sums{g.end.sums, panel * kColumns};
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
        end_row<kStreams>(g.end, own, offset(r) + panel * kColumns, sum[r][2 * panel], sum[r][2 * panel + 1], g.y,
                          sums);
      sums.store_sums();
    }
  }
  // Ends the columns that are valid.
  [[gnu::noinline]] void end_part_of_rows(const Sums<R, P>& sum) const {
    for (int panel = 0; panel < P; ++panel)
      for (int r = 0; r < R; ++r)
        end_part_of_row(g.end, panel * kColumns, offset(r), g.valid, sum[r][2 * panel], sum[r][2 * panel + 1], g.y);
  }
};

template <int R, int P, class T>
void gathered_tile(const GatheredRows<T>& g, int64_t first, Ahead& ahead) {
  const GatheredTile<R, P, T> tile{g, first};
  Sums<R, P> sum = {};
  tile.fetch_ends();
  tile.add_products(sum, ahead);
  if (g.valid == P * kColumns)
    return g.streams ? tile.template end_rows<true>(sum) : tile.template end_rows<false>(sum);
  Sums<R, P> copy;  // so that those above have no address and stay in registers
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) copy[r][i] = sum[r][i];
  tile.end_part_of_rows(copy);
}

// Calls tile.operator()<R>() for R = rows, at most `most`.
template <int most, class Tile>
[[gnu::always_inline]] inline void with_rows(int64_t rows, const Tile& tile) {
  if (rows == most)
    tile.template operator()<most>();
  else if constexpr (most > 1)
    with_rows<most - 1>(rows, tile);
}

// `o` is not copied, as above.
template <int P, bool kPacked, class Arithmetic = OfFloats>
void strided_rows(const RowsByPanels<typename Arithmetic::Word>& o) {
  constexpr int kMost = kRows / P;
  Ahead ahead(o.upcoming, (o.rows + kMost - 1) / kMost * ((o.k + kPiece - 1) / kPiece));
  const typename Arithmetic::Word* a = o.a;
  float* y = o.y;
  for (int64_t rows = o.rows; rows > 0; rows -= kMost) {
    with_rows<kMost>(rows < kMost ? rows : kMost,
                     [&]<int R>() { strided_tile<R, P, kPacked, Arithmetic>(o, a, y, ahead); });
    a += kMost * (kPacked ? 1 : o.a_stride);
    y += kMost * o.y_stride;
  }
}

void rows_by_panels(const RowsByPanels<float>& o) {
  if constexpr (kPanels > 1)
    if (o.panels > 1) return strided_rows<kPanels, false>(o);
  strided_rows<1, false>(o);
}

void panel_by_panel(int64_t k, const float* a, const float* b, float* y, int64_t y_stride, bool add,
                    const Upcoming& upcoming) {
  strided_rows<1, true>({kColumns, k, a, 1, b, y, y_stride, add, 1, 0, upcoming});
}

#ifdef __AVX512BF16__
void pairs_by_pairs(int64_t k, const Bf16Pair* a, const Bf16Pair* b, float* y, int64_t y_stride, bool add,
                    const Upcoming& upcoming) {
  strided_rows<1, true, OfPairs>({kColumns, k, a, 1, b, y, y_stride, add, 1, 0, upcoming});
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

// P panels: the rows in P parts. `g` is not copied: copies of what was stored in smaller parts wait until the stores of
// the tile before it are done.
template <int P, class T>
void gathered_panels(const GatheredRows<T>& g) {
  constexpr int64_t kElements = kPiece * kJoined<T>;
  constexpr int kMost = kRows / P;
  const int64_t parts = g.rows > kMost ? P : 1, rows = (g.rows + parts - 1) / parts;
  Ahead ahead(g.upcoming, parts * g.taps * ((g.k + kElements - 1) / kElements));
  for (int64_t first = 0; first < g.rows; first += rows)
    with_rows<kMost>(g.rows - first < rows ? g.rows - first : rows,
                     [&]<int R>() { gathered_tile<R, P>(g, first, ahead); });
}

template <class T>
void gathered_rows(const GatheredRows<T>& g) {
  if constexpr (kPanels > 1)
    if (g.valid > kColumns) return gathered_panels<kPanels>(g);
  gathered_panels<1>(g);
}

}  // namespace

ProductKernels product_kernels() {
  ProductKernels kernels{kRows, kColumns, kPanels, rows_by_panels, panel_by_panel, gathered_rows<float>, pack_rows};
#ifdef __AVX512BF16__
  kernels.gathered_bf16_rows = gathered_rows<Bf16>;
  kernels.pairs_by_pairs = pairs_by_pairs;
  kernels.join_pairs = join_pairs;
#endif
  return kernels;
}

}  // namespace dtrain::cpu::DT_ISA
