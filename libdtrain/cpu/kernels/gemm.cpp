#include "libdtrain/cpu/kernels/prefetcher.h"
#include "libdtrain/cpu/kernels/epilogue.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/isa/isa.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int kColumns = 2 * kLanes;
// Twice as many accumulators, two vectors of the panel and one of `a` fit the registers: 16, or 32 of AVX-512.
constexpr int kRows = kRegisters == 32 ? 12 : 6;

constexpr int64_t kPiece = 32;  // words of a row between prefetches
template <class T>
constexpr int kLine = 64 / sizeof(T);  // elements of a line of the caches

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
  [[gnu::always_inline]] static Pairs words(const void* from) { return load_pairs(from); }
  [[gnu::always_inline]] static Pairs broadcast(const void* word) { return broadcast_pair(word); }
  [[gnu::always_inline]] static void add_products(Floats& sum, Pairs a, Pairs b) { sum = dot_pairs(sum, a, b); }
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

// How many rows of a panel come into the first-level cache before they are read, 0: none. It gains something with wide
// vectors, for Winograd's products, of which each has another panel.
constexpr int kPrefetchRows = kLanes == 16 ? 12 : 0;

// sum[r] += the product of the `words` words word(r, 0), word(r, 1) ... of row r and the panels, whose rows are `row`
// elements apart, and they themselves `panel_step`.
template <int R, class Arithmetic, int P, int kPrefetchDistance = 0, class Word, class T>
[[gnu::always_inline]] inline void accumulate(const Word& word, int64_t words, const T* panel, int64_t row,
                                              int64_t panel_step, Sums<R, P>& sum) {
#pragma GCC unroll 2  // the loop itself would take a slot of every tenth instruction; more have been slower
  for (int64_t p = 0; p < words; ++p, panel += row) {
    decltype(Arithmetic::words(panel)) b[2 * P];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) b[i] = Arithmetic::words(panel + i / 2 * panel_step + i % 2 * kPackFactor<T> * kLanes);
    if constexpr (kPrefetchDistance > 0)
#pragma GCC unroll 4
      for (int i = 0; i < P * kColumns; i += kLine<T>)
        __builtin_prefetch(panel + kPrefetchDistance * row + i / kColumns * panel_step + i % kColumns);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const auto value = Arithmetic::broadcast(word(r, p));
#pragma GCC unroll 4
      for (int i = 0; i < 2 * P; ++i) Arithmetic::add_products(sum[r][i], value, b[i]);
    }
  }
}

// The words of rows that lie anywhere.
template <int R, class T>
struct RowWords {
  const T* at[R];

  [[gnu::always_inline]] const T* operator()(int r, int64_t p) const { return at[r] + p * kPackFactor<T>; }
  [[gnu::always_inline]] void advance(int64_t words) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] += words * kPackFactor<T>;
  }
};

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

// Calls fetch(row) for the next half of R rows, those from `row` on: of lines that are only reached at the end of a
// tile, which come while its sums are made. All at once they would hold up the panel for want of buffers.
template <int R, class Fetch>
[[gnu::always_inline]] inline void fetch_half(int& row, const Fetch& fetch) {
  constexpr int kAtOnce = (R + 1) / 2;
  for (const int end = row + kAtOnce < R ? row + kAtOnce : R; row < end; ++row) fetch(row);
}

// Calls piece(words) for the k words of a row, kPiece of them at a time.
template <class Piece>
[[gnu::always_inline]] inline void in_pieces(int64_t k, Prefetcher& prefetcher, const Piece& piece) {
  for (int64_t done = 0; done < k; done += kPiece) {
    prefetcher.fetch();
    piece(k - done < kPiece ? k - done : kPiece);
  }
}

// R rows of `o` from the one at `a` on, which go to those at `y`. `kColumnwise`: as columns_by_panels.
template <int R, int P, bool kColumnwise, class Arithmetic>
void strided_tile(const StridedGemm<typename Arithmetic::Word>& o, const typename Arithmetic::Word* a, float* y,
                  Prefetcher& prefetcher) {
  using Word = typename Arithmetic::Word;
  Sums<R, P> sum = {};
  const Word* panel = o.b;
  if constexpr (kColumnwise) {
    const int64_t step = o.a_stride;
    int fetched = o.add ? 0 : R;
    in_pieces(
        o.k, prefetcher, [&](int64_t words) __attribute__((always_inline)) {
          fetch_half<R>(
              fetched, [&](int r) __attribute__((always_inline)) {
#pragma GCC unroll 4
                for (int i = 0; i < P * kColumns; i += kLine<float>) __builtin_prefetch(y + r * o.y_stride + i, 1);
              });
          const auto word = [ a, step ](int r, int64_t p) __attribute__((always_inline)) { return a + p * step + r; };
          accumulate<R, Arithmetic, P>(word, words, panel, o.b_stride, o.panel_step, sum);
          a += words * step;
          panel += words * o.b_stride;
        });
  } else {
    RowWords<R, Word> rows;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) rows.at[r] = a + r * o.a_stride;
    in_pieces(
        o.k, prefetcher, [&](int64_t words) __attribute__((always_inline)) {
          accumulate<R, Arithmetic, P, kPrefetchRows>(rows, words, panel, kColumns, o.panel_step, sum);
          rows.advance(words);
          panel += words * kColumns;
        });
  }
  store_sums<R, P>(sum, y, o.y_stride, o.add);
}

// Rows [first, first + R) of those gathered, by P panels.
template <int R, int P, class T>
struct IndirectTile {
  const IndirectGemm<T>& g;
  int64_t first;

  int64_t offset(int r) const { return g.places[first + r]; }

  [[gnu::always_inline]] void fetch_ends(int row) const {
#pragma GCC unroll 8
    for (int i = 0; i < P * kColumns; i += kLine<T>) {
      if (!g.non_temporal) __builtin_prefetch(g.y + offset(row) + i, 1);
      if (g.end.residual) __builtin_prefetch(g.end.residual + offset(row) + i);
    }
  }
  [[gnu::always_inline]] void add_products(Sums<R, P>& sum, Prefetcher& prefetcher) const {
    using Arithmetic = typename ArithmeticOf<T>::Type;
    const T* const* tap = g.at + first;
    const T* panel = g.panel;
    int fetched = 0;
    for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
      RowWords<R, T> rows;
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) rows.at[r] = tap[r] + g.skip;
      in_pieces(
          g.k / kPackFactor<T>, prefetcher, [&](int64_t words) __attribute__((always_inline)) {
            fetch_half<R>(
                fetched, [&](int r) __attribute__((always_inline)) { fetch_ends(r); });
            accumulate<R, Arithmetic, P>(rows, words, panel, kPackFactor<T> * kColumns, g.panel_step, sum);
            rows.advance(words);
            panel += words * kPackFactor<T> * kColumns;
          });
    }
  }
  template <bool kNonTemporal>
  [[gnu::always_inline]] void end_rows(const Sums<R, P>& sum, const Epilogue<T>& end) const {
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel) {
      const BiasVectors bias(end.bias ? end.bias + panel * kColumns : nullptr);
      StatisticsVectors sums(end.sums, panel * kColumns);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
        finish_row<kNonTemporal>(end, bias, offset(r) + panel * kColumns, sum[r][2 * panel], sum[r][2 * panel + 1], g.y, sums);
      sums.store_sums();
    }
  }
  // What is not done to the rows of most convolutions of a training step is left out where the compiler sees it, in the
  // tiles that most rows are in.
  [[gnu::always_inline]] void end_rows(const Sums<R, P>& sum) const {
    if (g.non_temporal) return end_rows<true>(sum, g.end);
    if constexpr (R >= kRows / P - 1) {
      const auto [bias, residual, relu, sums] = g.end;
      const bool plain = !bias && !residual && !relu;
      if (plain && sums.pivot) return end_rows<false>(sum, Epilogue<T>{.sums = sums});
      if (plain) return end_rows<false>(sum, Epilogue<T>{});
    }
    end_rows<false>(sum, g.end);
  }
  // Ends the columns that are valid.
  [[gnu::noinline]] void end_part_of_rows(const Sums<R, P>& sum) const {
    for (int panel = 0; panel < P; ++panel)
      for (int r = 0; r < R; ++r)
        finish_partial_row(g.end, panel * kColumns, offset(r), g.valid, sum[r][2 * panel], sum[r][2 * panel + 1], g.y);
  }
};

template <int R, int P, class T>
void indirect_tile(const IndirectGemm<T>& g, int64_t first, Prefetcher& prefetcher) {
  const IndirectTile<R, P, T> tile{g, first};
  Sums<R, P> sum = {};
  tile.add_products(sum, prefetcher);
  if (g.valid == P * kColumns) return tile.end_rows(sum);
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

// `o` is not copied, for the reason that gathered_panels gives.
template <int P, bool kColumnwise, class Arithmetic>
void strided_rows(const StridedGemm<typename Arithmetic::Word>& o) {
  constexpr int kMost = kRows / P;
  const int64_t tiles = (o.rows + kMost - 1) / kMost, rows = tiles > 0 ? o.rows / tiles : 0;
  const int64_t longer = o.rows - tiles * rows;  // the others have `rows`: in few rows loads outnumber products
  Prefetcher prefetcher(o.prefetch, tiles * ((o.k + kPiece - 1) / kPiece));
  const typename Arithmetic::Word* a = o.a;
  float* y = o.y;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t count = tile < longer ? rows + 1 : rows;
    with_rows<kMost>(count, [&]<int R>() { strided_tile<R, P, kColumnwise, Arithmetic>(o, a, y, prefetcher); });
    a += count * (kColumnwise ? 1 : o.a_stride);
    y += count * o.y_stride;
  }
}

template <bool kColumnwise, class Arithmetic = OfFloats>
void strided_panels(const StridedGemm<typename Arithmetic::Word>& o) {
  if constexpr (kPanels > 1)
    if (o.panels > 1) return strided_rows<kPanels, kColumnwise, Arithmetic>(o);
  strided_rows<1, kColumnwise, Arithmetic>(o);
}

#ifdef __AVX512BF16__
void transposed_a_bf16(const StridedGemm<Bf16Pair>& o) { strided_panels<true, OfPairs>(o); }

void interleave_pairs(const Bf16* first, const Bf16* second, int64_t count, Bf16Pair* to, int64_t step) {
  const PairInterleaver interleave;
  for (int64_t i = 0; i < count; i += kColumns, to += step) interleave(first + i, second + i, to);
}
#endif

void pack_b(int64_t rows, int64_t words, const void* from, int64_t stride, void* panel) {
  constexpr int kBlock = 8;
  using Block = VectorOf<kBlock>::Type;
  const auto at = [&](int64_t row, int64_t word) { return static_cast<const char*>(from) + row * stride + 4 * word; };
  float* const to = static_cast<float*>(panel);
  int64_t word = 0;
  for (; word + kBlock <= words; word += kBlock)
    for (int64_t row = 0; row < kColumns; row += kBlock) {
      Block block[kBlock];
#pragma GCC unroll 8
      for (int i = 0; i < kBlock; ++i)
        block[i] = row + i < rows ? load<Block>(reinterpret_cast<const float*>(at(row + i, word))) : Block{};
      transpose(block);
#pragma GCC unroll 8
      for (int i = 0; i < kBlock; ++i) store(to + (word + i) * kColumns + row, block[i]);
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
void indirect_panels(const IndirectGemm<T>& g) {
  constexpr int64_t kElements = kPiece * kPackFactor<T>;
  constexpr int kMost = kRows / P;
  const int64_t parts = g.rows > kMost ? P : 1, rows = (g.rows + parts - 1) / parts;
  Prefetcher prefetcher(g.prefetch, parts * g.taps * ((g.k + kElements - 1) / kElements));
  for (int64_t first = 0; first < g.rows; first += rows)
    with_rows<kMost>(g.rows - first < rows ? g.rows - first : rows,
                     [&]<int R>() { indirect_tile<R, P>(g, first, prefetcher); });
}

template <class T>
void indirect(const IndirectGemm<T>& g) {
  if constexpr (kPanels > 1)
    if (g.valid > kColumns) return indirect_panels<kPanels>(g);
  indirect_panels<1>(g);
}

}  // namespace

GemmKernels gemm_kernels() {
  GemmKernels kernels{kRows,    kColumns, kPanels, strided_panels<false>, strided_panels<true>, indirect<float>,
                         pack_b};
#ifdef __AVX512BF16__
  kernels.indirect_bf16 = indirect<Bf16>;
  kernels.transposed_a_bf16 = transposed_a_bf16;
  kernels.interleave_pairs = interleave_pairs;
#endif
  return kernels;
}

}  // namespace dtrain::cpu::DT_ISA
