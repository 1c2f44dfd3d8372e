// Products of bytes where no instruction adds four of them at once: both sides are widened to 16 bits, whose pairs of
// products are added without overflow, as those of bytes would not be. Rows are widened a piece at a time, once for
// several panels; filters as they are loaded.
#pragma once

#include "libdtrain/cpu/kernels/ahead.h"
#include "libdtrain/cpu/kernels/byte_tile_end.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kGroup = 2;  // bytes of a column, side by side
inline constexpr int kByteRows = 12, kBytePanels = 4;

#ifdef __AVX512F__
inline constexpr int kRowsAtOnce = 12;
inline constexpr __mmask32 kAllWords = 0xffffffff;
[[gnu::always_inline]] inline Ints signed_words(const int8_t* from) {
  return _mm512_maskz_cvtepi8_epi16(kAllWords, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
[[gnu::always_inline]] inline Ints add_pairs(Ints sum, Ints a, Ints b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}
#else
inline constexpr int kRowsAtOnce = 6;  // whose sums, the filters and a row fit 16 registers
[[gnu::always_inline]] inline Ints signed_words(const int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::always_inline]] inline Ints add_pairs(Ints sum, Ints a, Ints b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
#endif

// A piece of all rows stays in the first-level cache; they do not begin in the same sets of it.
inline constexpr int64_t kPiece = 512, kWordStep = kPiece + 32;

// Sums of rows and panels between pieces.
struct KeptSums {
  Ints of[kBytePanels][kByteRows][2];
};

[[gnu::always_inline]] inline void widen(const uint8_t* from, int64_t count, uint16_t* to) {
  constexpr int64_t kBytes = 16;
  int64_t i = 0;
  for (; i + kBytes <= count; i += kBytes)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  for (; i < count; i += kQuad) {
    int32_t quad;
    std::memcpy(&quad, from + i, sizeof quad);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_cvtepu8_epi16(_mm_cvtsi32_si128(quad)));
  }
}

// Where in the runs of a tile the next piece begins.
struct PlaceInRuns {
  int64_t tap = 0, element = 0;
};

// Widens up to a piece of all rows from `at` on, and moves it; returns how many of each.
inline int64_t widen_piece(const GatheredBytes& g, PlaceInRuns& at, uint16_t* words) {
  int64_t filled = 0;
  while (filled < kPiece && at.tap < g.taps) {
    const int64_t left = g.k - at.element, count = left < kPiece - filled ? left : kPiece - filled;
    for (int64_t r = 0; r < g.rows; ++r)
      widen(g.at[at.tap * g.row_step + r] + at.element, count, words + r * kWordStep + filled);
    filled += count;
    at.element += count;
    if (at.element == g.k) at = {at.tap + 1, 0};
  }
  return filled;
}

// sum[r] += the product of `k` words of row r and a panel.
template <int R>
[[gnu::always_inline]] inline void accumulate(const uint16_t* words, int64_t k, const int8_t* panel,
                                              ByteSums<R, 1>& sum) {
#pragma GCC unroll 2
  for (int64_t p = 0; p < k; p += kGroup, panel += kGroup * kByteColumns) {
    const Ints low = signed_words(panel), high = signed_words(panel + kGroup * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      std::memcpy(&pair, words + r * kWordStep + p, sizeof pair);
      const Ints a = all_of(pair);
      sum[r][0] = add_pairs(sum[r][0], a, low);
      sum[r][1] = add_pairs(sum[r][1], a, high);
    }
  }
}

// A piece of the sums of some rows and one panel.
struct WordPiece {
  const uint16_t* words;
  int64_t k;
  const int8_t* panel;
  bool begins, ends;
};

template <int R>
void word_tile(const GatheredBytes& g, const WordPiece& piece, int panel, int64_t first, KeptSums& kept) {
  const ByteTileEnd<R, 1> end{g, first, panel * kByteColumns};
  if (piece.ends) end.fetch_lines();
  ByteSums<R, 1> sum;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < 2; ++i) sum[r][i] = piece.begins ? Ints{} : kept.of[panel][first + r][i];
  accumulate<R>(piece.words + first * kWordStep, piece.k, piece.panel, sum);
  if (piece.ends) return end(sum);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < 2; ++i) kept.of[panel][first + r][i] = sum[r][i];
}

template <int R = kRowsAtOnce>
void rows_of_tile(const GatheredBytes& g, const WordPiece& piece, int panel, int64_t first, int64_t rows,
                  KeptSums& kept) {
  if (rows == R)
    word_tile<R>(g, piece, panel, first, kept);
  else if constexpr (R > 1)
    rows_of_tile<R - 1>(g, piece, panel, first, rows, kept);
}

inline void gathered_bytes(const GatheredBytes& g) {
  alignas(64) uint16_t words[kByteRows * kWordStep];
  KeptSums kept;
  const int64_t inner = g.taps * g.k, pieces = (inner + kPiece - 1) / kPiece;
  const auto panels = static_cast<int>((g.valid + kByteColumns - 1) / kByteColumns);
  const int64_t parts = (g.rows + kRowsAtOnce - 1) / kRowsAtOnce, rows = (g.rows + parts - 1) / parts;
  Ahead ahead(g.upcoming, pieces * panels * parts);
  PlaceInRuns at;
  for (int64_t done = 0; done < inner;) {
    const int64_t k = widen_piece(g, at, words);
    for (int panel = 0; panel < panels; ++panel) {
      const WordPiece piece{words, k, g.panel + panel * g.panel_step + done * kByteColumns, done == 0,
                            done + k == inner};
      for (int64_t first = 0; first < g.rows; first += rows) {
        ahead.fetch();
        rows_of_tile(g, piece, panel, first, g.rows - first < rows ? g.rows - first : rows, kept);
      }
    }
    done += k;
  }
}

}  // namespace dtrain::cpu::DT_ISA
