#include "libdtrain/cpu/kernels/gemm_amx.h"

#include "libdtrain/cpu/kernels/amx_accumulators.h"
#include "libdtrain/cpu/kernels/epilogue.h"
#include "libdtrain/cpu/kernels/prefetch.h"
#include "libdtrain/cpu/kernels/requantize.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int64_t kPanelRow = kColumns * kWordBytes;  // bytes: a row of two tiles
constexpr int64_t kBlockRows = 2 * kTileRows;

// Accumulates one step of the inner dimension into 2 or 4 accumulator tiles: up to 16 rows of A at `first`, `stride`
// bytes apart, and as many at `second`, times the columns of a panel.
template <int tiles, class T>
[[gnu::always_inline]] inline void accumulate_step(const char* first, const char* second, int64_t stride,
                                                   const char* panel) {
  tile_load<5>(panel, kPanelRow);
  tile_load<4>(first, stride);
  tile_dot<0, T>();
  tile_load<5>(panel + kPanelRow / 2, kPanelRow);
  tile_dot<1, T>();
  if constexpr (tiles == 4) {
    tile_load<4>(second, stride);
    tile_dot<3, T>();
    tile_load<5>(panel, kPanelRow);
    tile_dot<2, T>();
  }
}

// Words of a step: as many as fit a row of a tile and divide the words of a run.
int64_t step_of(int64_t words) {
  int64_t steps = (words + kTileWords - 1) / kTileWords;
  while (words % steps != 0) ++steps;
  return words / steps;
}

template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, Bf16>, float, int32_t>;
template <class T>
using BlockSums = Accumulator<T>[kBlockRows][kColumns];

// The sums of up to 32 rows from `first` on: one tile of rows and, of 4 tiles, another `second` rows after it. Calls
// interleaved() after each step: its code runs in the shadow of the tile instructions.
template <int tiles, class T, class Interleaved>
[[gnu::always_inline]] inline void multiply(const AmxGemm<T>& g, int64_t first, int64_t second, int64_t words,
                                            BlockSums<T>& sums, const Interleaved& interleaved) {
  const int64_t stride = g.step * static_cast<int64_t>(sizeof(T)), bytes = words * kWordBytes;
  const int64_t steps = g.k * static_cast<int64_t>(sizeof(T)) / bytes;
  const char* panel = static_cast<const char*>(g.panel);
  zero_accumulators<tiles>();
  for (int64_t tap = 0; tap < g.taps; ++tap) {
    const char* row = reinterpret_cast<const char*>(g.at[tap] + first * g.step);
    for (int64_t step = 0; step < steps; ++step, row += bytes, panel += words * kPanelRow) {
      accumulate_step<tiles, T>(row, row + second * stride, stride, panel);
      interleaved();
    }
  }
  store_accumulators<tiles>(TiledMatrix<Accumulator<T>>{sums[0], kColumns, second});
}

// Rows [at, last) of a block that are accumulated but have not been through the epilogue. `first`: the row of sums[0].
template <class T>
struct PendingRows {
  BlockSums<T>* sums = nullptr;
  int64_t first = 0, at = 0, last = 0;

  template <class Finish>
  [[gnu::always_inline]] void finish(int64_t count, const Finish& finish_row) {
    for (const int64_t end = last - at < count ? last : at + count; at < end; ++at) finish_row(at, (*sums)[at - first]);
  }
};

// Calls finish(row, its sums) for all rows, those of a block while the next one is accumulated. The rows of y and of
// the residual are not prefetched: they mostly are in a cache, and prefetching takes longer than waiting for the
// others.
template <class T, class Finish>
[[gnu::always_inline]] inline void for_each_row(const AmxGemm<T>& g, const Finish& finish) {
  alignas(64) BlockSums<T> sums[2];
  const int64_t run = g.k * static_cast<int64_t>(sizeof(T)) / kWordBytes, words = step_of(run);
  const int64_t tile_rows = g.rows < kTileRows ? g.rows : kTileRows;
  const int64_t second = g.rows < kBlockRows ? g.rows - tile_rows : kTileRows;  // rows between the tiles of a block
  const int64_t steps = g.taps * (run / words), rows_per_step = (kBlockRows + steps - 1) / steps;
  Prefetcher prefetcher(g.prefetch, (g.rows + kBlockRows - 1) / kBlockRows * steps);
  tile_configure(gemm_tiles(tile_rows, words));
  PendingRows<T> pending;
  int buffer = 0;
  const auto interleaved = [&]() __attribute__((always_inline)) {
    prefetcher.fetch();
    pending.finish(rows_per_step, finish);
  };
  for (int64_t done = 0; done < g.rows; buffer ^= 1) {
    // The last rows are computed together with finished rows before them, so that the tiles are full.
    const int64_t left = g.rows - done, size = left <= tile_rows ? tile_rows : tile_rows + second;
    const int64_t first = left < size ? g.rows - size : done;
    if (size == tile_rows)
      multiply<2>(g, first, 0, words, sums[buffer], interleaved);
    else
      multiply<4>(g, first, second, words, sums[buffer], interleaved);
    pending.finish(kBlockRows, finish);
    pending = {&sums[buffer], first, done, first + size};
    done = first + size;
  }
  tile_release();
  pending.finish(kBlockRows, finish);
}

// Operands by value: members of references would be loaded again after each store of a tile.
template <bool kNonTemporal>
void bf16_all_columns(const AmxGemm<Bf16> g, const Epilogue<Bf16> epilogue, Bf16* y) {
  PanelEpilogue<Bf16> finish(epilogue, 0);
  for_each_row(
      g, [&](int64_t row, const float* sums) __attribute__((always_inline)) {
        if (g.places[row] >= 0) finish.store_row<kNonTemporal>(load(sums), load(sums + kLanes), g.places[row], y);
      });
  finish.flush();
}

void bf16(const AmxGemm<Bf16>& g, const Epilogue<Bf16>& epilogue, Bf16* y, bool non_temporal) {
  if (g.valid == kColumns)
    return non_temporal ? bf16_all_columns<true>(g, epilogue, y) : bf16_all_columns<false>(g, epilogue, y);
  for_each_row(g, [&](int64_t row, const float* sums) {
    if (g.places[row] >= 0) finish_valid_columns(epilogue, sums, g.places[row], g.valid, y);
  });
}

void u8s8(const AmxGemm<uint8_t>& g, const Requantize& epilogue, const RequantizeOutput& y) {
  if (g.valid == kColumns && requantize_row_applies(epilogue, y))
    return with_requantize_row(epilogue, y, 0, [&](const auto& finish_row) {
      for_each_row(
          g, [&](int64_t row, const int32_t* sums) __attribute__((always_inline)) {
            if (g.places[row] >= 0)
              finish_row(g.places[row], load_unaligned<Ints>(sums), load_unaligned<Ints>(sums + kLanes));
          });
    });
  for_each_row(g, [&](int64_t row, const int32_t* sums) {
    if (g.places[row] >= 0) finish_valid_columns(epilogue, sums, g.places[row], g.valid, y);
  });
}

void transpose_panel(int64_t depth, const Bf16Pair* panel, Bf16Pair* to, int64_t row) {
  for (int64_t line = 0; line < depth; line += kTileRows)
    for (int64_t column = 0; column < kColumns; column += kTileWords)
      transpose_16x16(&panel[line * kColumns + column].bits, kColumns, &to[column * row + line].bits, row);
}

void transposed_a(const TransposedPanels& a, const Bf16Pair* b, float* y, int64_t y_stride, bool add,
                  const PrefetchRange& prefetch) {
  const int64_t row = a.row * kWordBytes;
  Prefetcher prefetcher(prefetch, a.count * a.depth / kTileWords);
  tile_configure(gemm_tiles(kTileRows, kTileWords));
  for (int64_t panel = 0; panel < a.count; ++panel, y += kColumns * y_stride) {
    const TiledMatrix<float> sums{y, y_stride, kTileRows};
    add ? load_accumulators<4>(sums) : zero_accumulators<4>();
    const char* rows = reinterpret_cast<const char*>(a.data + panel * a.step);
    const char* b_panel = reinterpret_cast<const char*>(b);
    for (int64_t line = 0; line < a.depth; line += kTileWords) {
      prefetcher.fetch();
      accumulate_step<4, Bf16>(rows, rows + kTileRows * row, row, b_panel);
      rows += kTileWords * kWordBytes, b_panel += kTileWords * kPanelRow;
    }
    store_accumulators<4>(sums);
  }
  tile_release();
}

}  // namespace

void add_gemm_amx(Kernels& kernels) {
  kernels.capabilities.amx = true;
  kernels.amx = {bf16, u8s8, transpose_panel, transposed_a};
}

}  // namespace dtrain::cpu::DT_ISA
