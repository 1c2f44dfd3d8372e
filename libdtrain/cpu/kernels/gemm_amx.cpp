#include "libdtrain/cpu/kernels/gemm_amx.h"

#include "libdtrain/cpu/kernels/table.h"

#ifdef __AMX_TILE__
#include "libdtrain/cpu/kernels/prefetcher.h"
#include "libdtrain/cpu/kernels/requantize.h"
#include "libdtrain/cpu/kernels/epilogue.h"
#include "libdtrain/cpu/kernels/isa/isa.h"
#endif

namespace dtrain::cpu::DT_ISA {

#ifdef __AMX_TILE__
namespace {

constexpr int64_t kColumns = 2 * kLanes;  // of a panel: of two tiles
constexpr int64_t kPanelRow = kColumns * kWordBytes;

// The sums += the rows times the columns. 
template <class T>
struct Products;
template <>
struct Products<Bf16> {
  using Sum = float;
  template <int tile>
  [[gnu::always_inline]] static void dot() {
    tile_dot_bf16<tile>();
  }
};
template <>
struct Products<uint8_t> {
  using Sum = int32_t;
  template <int tile>
  [[gnu::always_inline]] static void dot() {
    tile_dot_u8s8<tile>();
  }
};

// The sums += the products of one piece: up to 16 rows at `first`, `step` bytes apart, as many at `second` where
// `kSecond`, and the columns of a panel.
template <bool kSecond, class T>
[[gnu::always_inline]] inline void multiply_piece(const char* first, const char* second, int64_t step,
                                                  const char* panel) {
  tile_load<5>(panel, kPanelRow);
  tile_load<4>(first, step);
  Products<T>::template dot<0>();
  tile_load<5>(panel + kPanelRow / 2, kPanelRow);
  Products<T>::template dot<1>();
  if constexpr (kSecond) {
    tile_load<4>(second, step);
    Products<T>::template dot<3>();
    tile_load<5>(panel, kPanelRow);
    Products<T>::template dot<2>();
  }
}

// Words of a piece: as many as fit a row of a tile and divide those of a run.
int64_t piece_of(int64_t words) {
  int64_t pieces = (words + kTileWords - 1) / kTileWords;
  while (words % pieces != 0) ++pieces;
  return words / pieces;
}

template <class T>
using Sums = typename Products<T>::Sum[2 * kTileRows][kColumns];

// The sums of up to 32 rows from `first` on: a tile of rows and, where `kSecond`, the tile `second` rows after it.
// Calls between() after each piece: what it does takes no time from the tiles.
template <bool kSecond, class T, class Between>
[[gnu::always_inline]] inline void multiply(const AmxGemm<T>& g, int64_t first, int64_t second, int64_t words,
                                            Sums<T>& sums, const Between& between) {
  const int64_t step = g.step * static_cast<int64_t>(sizeof(T)), bytes = words * kWordBytes;
  const int64_t pieces = g.k * static_cast<int64_t>(sizeof(T)) / bytes;
  const char* panel = static_cast<const char*>(g.panel);
  tile_zero<0>();
  tile_zero<1>();
  if constexpr (kSecond) {
    tile_zero<2>();
    tile_zero<3>();
  }
  for (int64_t tap = 0; tap < g.taps; ++tap) {
    const char* row = reinterpret_cast<const char*>(g.at[tap] + first * g.step);
    for (int64_t piece = 0; piece < pieces; ++piece, row += bytes, panel += words * kPanelRow) {
      multiply_piece<kSecond, T>(row, row + second * step, step, panel);
      between();
    }
  }
  constexpr int64_t kSumsRow = kColumns * kWordBytes;
  tile_store<0>(sums[0], kSumsRow);
  tile_store<1>(sums[0] + kLanes, kSumsRow);
  if constexpr (kSecond) {
    tile_store<2>(sums[second], kSumsRow);
    tile_store<3>(sums[second] + kLanes, kSumsRow);
  }
}

// Rows [at, last) whose sums are there, and which are not finished yet.
template <class T>
struct Ready {
  Sums<T>* sums = nullptr;
  int64_t first = 0, at = 0, last = 0;  // first: that of sums[0]

  template <class Finish>
  [[gnu::always_inline]] void finish(int64_t count, const Finish& one) {
    for (const int64_t end = last - at < count ? last : at + count; at < end; ++at) one(at, (*sums)[at - first]);
  }
};

// Calls finish(row, sums of that row) for all rows, those of a tile while the next one is computed. What it writes and
// adds is not fetched before: where it is in a cache, which it mostly is, that takes longer than waiting for it.
template <class T, class Finish>
[[gnu::always_inline]] inline void for_each_row(const AmxGemm<T>& g, const Finish& finish) {
  alignas(64) Sums<T> sums[2];
  const int64_t run = g.k * static_cast<int64_t>(sizeof(T)) / kWordBytes, words = piece_of(run), both = 2 * kTileRows;
  const int64_t tile_rows = g.rows < kTileRows ? g.rows : kTileRows;
  const int64_t second = g.rows < both ? g.rows - tile_rows : kTileRows;  // of two tiles: rows from one to the other
  const int64_t pieces = g.taps * (run / words), rows_per_piece = (both + pieces - 1) / pieces;
  Prefetcher prefetcher(g.prefetch, (g.rows + both - 1) / both * pieces);
  tile_configure(gemm_tiles(tile_rows, words));
  Ready<T> ready;
  int number = 0;
  const auto between = [&]() __attribute__((always_inline)) {
    prefetcher.fetch();
    ready.finish(rows_per_piece, finish);
  };
  for (int64_t done = 0; done < g.rows; number ^= 1) {
    // The last rows are computed with some of those before them, which fill the tiles, and which are there already.
    const int64_t left = g.rows - done, size = left <= tile_rows ? tile_rows : tile_rows + second;
    const int64_t first = left < size ? g.rows - size : done;
    if (size == tile_rows)
      multiply<false>(g, first, 0, words, sums[number], between);
    else
      multiply<true>(g, first, second, words, sums[number], between);
    ready.finish(both, finish);
    ready = {&sums[number], first, done, first + size};
    done = first + size;
  }
  tile_release();
  ready.finish(both, finish);
}

// By value: what is elsewhere the compiler would read again after each store of a tile.
template <bool kNonTemporal>
void whole_rows_of_pairs(const AmxGemm<Bf16> g, const Epilogue<Bf16> end, Bf16* y) {
  const BiasVectors bias(end.bias);
  StatisticsVectors all{end.sums, 0};
  for_each_row(
      g, [&](int64_t row, const float* sums) __attribute__((always_inline)) {
        if (g.places[row] >= 0) finish_row<kNonTemporal>(end, bias, g.places[row], load(sums), load(sums + kLanes), y, all);
      });
  all.store_sums();
}

void pairs(const AmxGemm<Bf16>& g, const Epilogue<Bf16>& end, Bf16* y, bool non_temporal) {
  if (g.valid == kColumns)
    return non_temporal ? whole_rows_of_pairs<true>(g, end, y) : whole_rows_of_pairs<false>(g, end, y);
  for_each_row(g, [&](int64_t row, const float* sums) {
    if (g.places[row] >= 0) finish_partial_row(end, 0, g.places[row], g.valid, load(sums), load(sums + kLanes), y);
  });
}

void bytes(const AmxGemm<uint8_t>& g, const Requantize& end, const RequantizeOutput& y) {
  if (g.valid == kColumns && fast_requantize_suffices(end, y))
    return with_requantize_row(end, y, 0, [&](const auto& finish_row) {
      for_each_row(
          g, [&](int64_t row, const int32_t* sums) __attribute__((always_inline)) {
            if (g.places[row] >= 0) finish_row(g.places[row], load_ints(sums), load_ints(sums + kLanes));
          });
    });
  for_each_row(g, [&](int64_t row, const int32_t* sums) {
    if (g.places[row] >= 0)
      finish_partial_row(end, 0, g.places[row], g.valid, load_ints(sums), load_ints(sums + kLanes), y);
  });
}

void turn(int64_t depth, const Bf16Pair* panel, Bf16Pair* to, int64_t row) {
  for (int64_t line = 0; line < depth; line += kTileRows)
    for (int64_t column = 0; column < kColumns; column += kTileWords)
      transpose_16x16(reinterpret_cast<const uint32_t*>(panel + line * kColumns + column), kColumns,
                      reinterpret_cast<uint32_t*>(to + column * row + line), row);
}

void transposed_a(const TransposedPanels& a, const Bf16Pair* b, float* y, int64_t y_stride, bool add,
                     const PrefetchRange& prefetch) {
  const int64_t row = a.row * kWordBytes, y_row = y_stride * kWordBytes;
  Prefetcher prefetcher(prefetch, a.count * a.depth / kTileWords);
  tile_configure(gemm_tiles(kTileRows, kTileWords));
  for (int64_t panel = 0; panel < a.count; ++panel, y += kColumns * y_stride) {
    float* const second = y + kTileRows * y_stride;
    if (add) {
      tile_load<0>(y, y_row);
      tile_load<1>(y + kLanes, y_row);
      tile_load<2>(second, y_row);
      tile_load<3>(second + kLanes, y_row);
    } else {
      tile_zero<0>();
      tile_zero<1>();
      tile_zero<2>();
      tile_zero<3>();
    }
    const char* first = reinterpret_cast<const char*>(a.data + panel * a.step);
    const char* pairs = reinterpret_cast<const char*>(b);
    for (int64_t line = 0; line < a.depth; line += kTileWords) {
      prefetcher.fetch();
      multiply_piece<true, Bf16>(first, first + kTileRows * row, row, pairs);
      first += kTileWords * kWordBytes, pairs += kTileWords * kPanelRow;
    }
    tile_store<0>(y, y_row);
    tile_store<1>(y + kLanes, y_row);
    tile_store<2>(second, y_row);
    tile_store<3>(second + kLanes, y_row);
  }
  tile_release();
}

}  // namespace

AmxKernels amx_kernels() { return {pairs, bytes, turn, transposed_a}; }
#else
AmxKernels amx_kernels() { return {}; }
#endif

}  // namespace dtrain::cpu::DT_ISA
