// The GEMM micro-kernel: a block of R rows by P packed micro-panels of B is accumulated in registers over the inner
// dimension, then goes through the epilogue. Templates over the arithmetic, of f32, bf16 or u8s8, and over the source
// of A's rows: strided, transposed, or indirect. Included by the source of each element type.
#pragma once

#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/prefetch.h"
#include "libdtrain/cpu/kernels/register_blocking.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Arithmetic types have the element type A, the vector type Accumulator, the epilogue Output, kPrefetchStep (32-bit
// words of a row between prefetches), load_b(panel), broadcast_a(word) and multiply_add(accumulator, a, b).
template <class Arithmetic, int R, int P>
using SumsOf = Sums<typename Arithmetic::Accumulator, R, P>;

// sum[r] += the product of `k` elements of row r, of which at(r, p) is the address, and the panels, whose rows are
// `row` elements apart, and they themselves `panel_step`. Prefetches the panels kPrefetchRows of their rows ahead, 0:
// not at all.
template <int R, class Arithmetic, int P, int kPrefetchRows = 0, class Address, class T>
[[gnu::always_inline]] inline void accumulate(const Address& at, int64_t k, const T* panel, int64_t row,
                                              int64_t panel_step, SumsOf<Arithmetic, R, P>& sum) {
#pragma GCC unroll 2  // loop overhead would take every tenth slot; larger factors have been slower
  for (int64_t p = 0; p < k; p += kPackFactor<T>, panel += row) {
    decltype(Arithmetic::load_b(panel)) b[2 * P];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i)
      b[i] = Arithmetic::load_b(panel + i / 2 * panel_step + i % 2 * kPackFactor<T> * kLanes);
    if constexpr (kPrefetchRows > 0)
#pragma GCC unroll 2
      for (int i = 0; i < P; ++i) prefetch_row<kColumns>(panel + kPrefetchRows * row + i * panel_step);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const auto a = Arithmetic::broadcast_a(at(r, p));
#pragma GCC unroll 4
      for (int i = 0; i < 2 * P; ++i) Arithmetic::multiply_add(sum[r][i], a, b[i]);
    }
  }
}

// R rows of A at any addresses.
template <int R, class T>
struct RowPointers {
  const T* at[R];

  [[gnu::always_inline]] RowPointers(const T* first, int64_t stride) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] = first + r * stride;
  }
  [[gnu::always_inline]] RowPointers(const T* const* rows, int64_t skip) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] = rows[r] + skip;
  }
  [[gnu::always_inline]] const T* operator()(int r, int64_t p) const { return at[r] + p; }
  [[gnu::always_inline]] void advance(int64_t k) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] += k;
  }
};

// Neighbouring columns of a row-major matrix, which are rows of its transpose.
template <class T>
struct TransposedRows {
  const T* at;
  int64_t stride;

  [[gnu::always_inline]] TransposedRows(const T* first, int64_t columns) : at(first), stride(columns) {}
  [[gnu::always_inline]] const T* operator()(int r, int64_t p) const { return at + p * stride + r; }
  [[gnu::always_inline]] void advance(int64_t k) { at += k * stride; }
};

// Calls prefetch(row) for the next half of R rows, from `row` on: lines that the epilogue reads or writes. All at once
// they would take the line-fill buffers that the panel needs.
template <int R, class Prefetch>
[[gnu::always_inline]] inline void prefetch_half(int& row, const Prefetch& prefetch) {
  constexpr int kHalf = (R + 1) / 2;
  for (const int end = row + kHalf < R ? row + kHalf : R; row < end; ++row) prefetch(row);
}

// Calls body(count) for the k elements of a row, `step` of them at a time, with a prefetch before each.
template <int64_t step, class Body>
[[gnu::always_inline]] inline void for_each_step(int64_t k, Prefetcher& prefetcher, const Body& body) {
  for (int64_t done = 0; done < k; done += step) {
    prefetcher.fetch();
    body(k - done < step ? k - done : step);
  }
}

// Calls the block for R = rows, at most `most`.
template <int most, class Body>
[[gnu::always_inline]] inline void with_rows(int64_t rows, const Body& block) {
  if (rows == most)
    block.template operator()<most>();
  else if constexpr (most > 1)
    with_rows<most - 1>(rows, block);
}

// sum += the rows [first, first + R) of `g` times P panels.
template <int R, int P, class Arithmetic, class Gemm, class Output>
[[gnu::always_inline]] inline void accumulate_taps(const Gemm& g, int64_t first, const Output& output,
                                                   SumsOf<Arithmetic, R, P>& sum, Prefetcher& prefetcher) {
  using A = typename Arithmetic::A;
  const A* const* tap = g.at + first;
  auto* panel = g.panel;
  int64_t skip = 0;
  if constexpr (requires { g.skip; }) skip = g.skip;
  [[maybe_unused]] int prefetched = 0;
  if constexpr (requires { output.prefetch_all(); }) output.prefetch_all();
  for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
    RowPointers<R, A> rows(tap, skip);
    for_each_step<Arithmetic::kPrefetchStep * kPackFactor<A>>(
        g.k, prefetcher, [&](int64_t k) __attribute__((always_inline)) {
          if constexpr (requires { output.prefetch(0); })
            prefetch_half<R>(
                prefetched, [&](int r) __attribute__((always_inline)) { output.prefetch(r); });
          accumulate<R, Arithmetic, P>(rows, k, panel, kPackFactor<A> * kColumns, g.panel_step, sum);
          rows.advance(k);
          panel += k * kColumns;
        });
  }
}

template <int R, int P, class Arithmetic, class Gemm>
void indirect_block(const Gemm& g, int64_t first, Prefetcher& prefetcher) {
  const typename Arithmetic::template Output<R, P> output{g, first};
  SumsOf<Arithmetic, R, P> sum = {};
  accumulate_taps<R, P, Arithmetic>(g, first, output, sum, prefetcher);
  if (output.all_columns()) return output.store_rows(sum);
  typename Arithmetic::Accumulator copy[R][2 * P];  // so that the accumulators have no address and stay in registers
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) copy[r][i] = sum[r][i];
  for (int r = 0; r < R; ++r) output.store_valid_columns(r, copy[r]);
}

// Takes the rows in P blocks. `g` is not copied: wide loads of fields that narrow stores have just written would fail
// store forwarding, and wait for the stores of the block before them.
template <int P, class Arithmetic, class Gemm>
void indirect_rows(const Gemm& g) {
  constexpr int64_t kElements = Arithmetic::kPrefetchStep * kPackFactor<typename Arithmetic::A>;
  constexpr int kMost = kRows / P;
  const int64_t blocks = g.rows > kMost ? P : 1, rows = (g.rows + blocks - 1) / blocks;
  Prefetcher prefetcher(g.prefetch, blocks * g.taps * ((g.k + kElements - 1) / kElements));
  for (int64_t first = 0; first < g.rows; first += rows)
    with_rows<kMost>(g.rows - first < rows ? g.rows - first : rows,
                     [&]<int R>() { indirect_block<R, P, Arithmetic>(g, first, prefetcher); });
}

template <class Arithmetic, class Gemm>
void indirect(const Gemm& g) {
  if constexpr (kPanels > 1)
    if (g.valid > kColumns) return indirect_rows<kPanels, Arithmetic>(g);
  indirect_rows<1, Arithmetic>(g);
}

// Rows of a packed panel that are prefetched into the first-level cache ahead of their use. It pays with wide vectors,
// for the GEMMs of Winograd convolutions, each of which has another panel.
constexpr int kPanelPrefetchRows = kRegisters == 32 ? 12 : 0;

// R rows of A from `a` on, whose results go to `y`. Prefetches y where A is transposed: the sums over pixels of a
// weight gradient.
template <int R, int P, bool kTransposed, class Arithmetic>
void strided_block(const StridedGemm<typename Arithmetic::Word>& g, const typename Arithmetic::Word* a, float* y,
                   Prefetcher& prefetcher) {
  using Word = typename Arithmetic::Word;
  std::conditional_t<kTransposed, TransposedRows<Word>, RowPointers<R, Word>> rows(a, g.a_stride);
  SumsOf<Arithmetic, R, P> sum = {};
  const Word* panel = g.b;
  const int64_t b_stride = kTransposed ? g.b_stride : kColumns, y_stride = g.y_stride;
  const bool add = g.add;  // copies: stores may alias any object
  int prefetched = kTransposed && !add ? 0 : R;
  for_each_step<Arithmetic::kPrefetchStep>(
      g.k, prefetcher, [&](int64_t k) __attribute__((always_inline)) {
        prefetch_half<R>(
            prefetched,
            [&](int r) __attribute__((always_inline)) { prefetch_row<P * kColumns, true>(y + r * y_stride); });
        accumulate<R, Arithmetic, P, kTransposed ? 0 : kPanelPrefetchRows>(rows, k, panel, b_stride, g.panel_step, sum);
        rows.advance(k);
        panel += k * b_stride;
      });
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r, y += y_stride)
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) {
      float* const to = y + i * kLanes;
      store(to, add ? load(to) + sum[r][i] : sum[r][i]);
    }
}

// `g` is not copied, as in indirect_rows.
template <int P, bool kTransposed, class Arithmetic>
void strided_rows(const StridedGemm<typename Arithmetic::Word>& g) {
  constexpr int kMost = kRows / P;
  const int64_t blocks = (g.rows + kMost - 1) / kMost, rows = blocks > 0 ? g.rows / blocks : 0;
  const int64_t longer = g.rows - blocks * rows;  // blocks of rows + 1: in a small rest loads would outnumber products
  Prefetcher prefetcher(g.prefetch, blocks * ((g.k + Arithmetic::kPrefetchStep - 1) / Arithmetic::kPrefetchStep));
  const typename Arithmetic::Word* a = g.a;
  float* y = g.y;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t count = block < longer ? rows + 1 : rows;
    with_rows<kMost>(count, [&]<int R>() { strided_block<R, P, kTransposed, Arithmetic>(g, a, y, prefetcher); });
    a += count * (kTransposed ? 1 : g.a_stride);
    y += count * g.y_stride;
  }
}

template <bool kTransposed, class Arithmetic>
void strided(const StridedGemm<typename Arithmetic::Word>& g) {
  if constexpr (kPanels > 1)
    if (g.panels > 1) return strided_rows<kPanels, kTransposed, Arithmetic>(g);
  strided_rows<1, kTransposed, Arithmetic>(g);
}

}  // namespace
}  // namespace dtrain::cpu::DT_ISA
