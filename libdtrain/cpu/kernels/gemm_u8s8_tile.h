// Tiles of products of bytes.
#pragma once

#include "libdtrain/cpu/kernels/gemm_u8s8_tile_end.h"
#include "libdtrain/cpu/kernels/prefetcher.h"

namespace dtrain::cpu::DT_ISA {

// Twice as many accumulators, two vectors of the panel and one of a row fit 32 registers. So do the sums of half as
// many rows by two panels, which take fewer loads.
inline constexpr int kByteRows = kRegisters == 32 ? 12 : 6, kBytePanels = kLanes == 16 ? 2 : 1;

inline constexpr int64_t kPiece = 64;  // bytes of a run between prefetches

// sum[r] += the product of `k` bytes of row r and the panels, which are `panel_step` bytes apart.
template <int R, int P>
[[gnu::always_inline]] inline void accumulate(const uint8_t* const (&at)[R], int64_t k, const int8_t* panel,
                                              int64_t panel_step, ByteSums<R, P>& sum) {
#pragma GCC unroll 2  // as in product.cpp
  for (int64_t p = 0; p < k; p += kQuad, panel += kQuad * kByteColumns) {
    Ints b[2 * P];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) b[i] = load_ints(panel + i / 2 * panel_step + i % 2 * kQuad * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int32_t quad;
      std::memcpy(&quad, at[r] + p, sizeof quad);
      const Ints a = broadcast(quad);
#pragma GCC unroll 4
      for (int i = 0; i < 2 * P; ++i) sum[r][i] = dot_quads(sum[r][i], a, b[i]);
    }
  }
}

template <int R, int P>
[[gnu::always_inline]] inline void add_products(const IndirectGemmU8S8& g, int64_t first, ByteSums<R, P>& sum,
                                                Prefetcher& prefetcher) {
  const uint8_t* const* tap = g.at + first;
  const int8_t* panel = g.panel;
  for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
    const uint8_t* at[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] = tap[r];
    for (int64_t done = 0; done < g.k; done += kPiece) {
      const int64_t piece = g.k - done < kPiece ? g.k - done : kPiece;
      prefetcher.fetch();
      accumulate<R, P>(at, piece, panel, g.panel_step, sum);
      panel += piece * kByteColumns;
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) at[r] += piece;
    }
  }
}

template <int R, int P>
void indirect_tile(const IndirectGemmU8S8& g, int64_t first, Prefetcher& prefetcher) {
  const ByteTileEnd<R, P> end{g, first};
  end.fetch_lines();
  ByteSums<R, P> sum;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) sum[r][i] = Ints{};
  add_products<R, P>(g, first, sum, prefetcher);
  end(sum);
}

template <int P, int R = kByteRows / P>
void rows_of_tile(const IndirectGemmU8S8& g, int64_t rows, int64_t first, Prefetcher& prefetcher) {
  if (rows == R)
    indirect_tile<R, P>(g, first, prefetcher);
  else if constexpr (R > 1)
    rows_of_tile<P, R - 1>(g, rows, first, prefetcher);
}

// P panels: the rows in P parts.
template <int P>
void indirect_panels(const IndirectGemmU8S8& g) {
  const int64_t parts = g.rows > kByteRows / P ? P : 1, rows = (g.rows + parts - 1) / parts;
  Prefetcher prefetcher(g.prefetch, parts * g.taps * ((g.k + kPiece - 1) / kPiece));
  for (int64_t first = 0; first < g.rows; first += rows)
    rows_of_tile<P>(g, g.rows - first < rows ? g.rows - first : rows, first, prefetcher);
}

inline void indirect_u8s8(const IndirectGemmU8S8& g) {
  if constexpr (kBytePanels > 1)
    if (g.valid > kByteColumns) return indirect_panels<kBytePanels>(g);
  indirect_panels<1>(g);
}

}  // namespace dtrain::cpu::DT_ISA
