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
// Twice as many accumulators, two vectors of the panel and one of a row fit 32 registers. So do the sums of half as
// many rows by two panels, which take fewer loads.
constexpr int kRows = 12, kPanels = 2;

// Quads of a vector of filters as products take them.
struct Filters {
  Ints quads;
  Filters() = default;
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
// bytes of a quad at even places and those at odd ones are apart, in filters as in activations, which leaves no
// registers for a second panel.
constexpr int kPanels = 1;
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
  Filters() = default;
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

// Of R rows and P panels.
template <int R, int P>
using Sums = Ints[R][2 * P];

// sum[r] += the product of `k` bytes of row r and the panels, which are `panel_step` bytes apart.
template <int R, int P>
[[gnu::always_inline]] inline void accumulate(const uint8_t* const (&at)[R], int64_t k, const int8_t* panel,
                                              int64_t panel_step, Sums<R, P>& sum) {
#pragma GCC unroll 2  // as in product.cpp
  for (int64_t p = 0; p < k; p += kQuad, panel += kQuad * kColumns) {
    Filters b[2 * P];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) b[i] = Filters(panel + i / 2 * panel_step + i % 2 * kQuad * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int32_t quad;
      std::memcpy(&quad, at[r] + p, sizeof quad);
      const Activations a(quad);
#pragma GCC unroll 4
      for (int i = 0; i < 2 * P; ++i) sum[r][i] = add_products(sum[r][i], a, b[i]);
    }
  }
}

// Rows [first, first + R) of those gathered, by P panels.
template <int R, int P>
struct ByteTile {
  const GatheredBytes& g;
  int64_t first;

  int64_t offset(int r) const { return (first + r) * g.y_stride; }

  // Lines that are only reached at the end come while the sums are made.
  template <class T>
  [[gnu::always_inline]] void fetch(const T* from, bool written) const {
    constexpr auto kLine = static_cast<int>(64 / sizeof(T));
    if (!from) return;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < P * kColumns; i += kLine) {
        const T* const at = from + offset(r) + i;
        written ? __builtin_prefetch(at, 1) : __builtin_prefetch(at);
      }
  }
  [[gnu::always_inline]] void fetch_ends() const {
    fetch(g.y.bytes, true);
    fetch(g.y.floats, true);
    fetch(g.end.residual_bytes, false);
    fetch(g.end.residual, false);
  }
  [[gnu::always_inline]] void add_products(Sums<R, P>& sum, Ahead& ahead) const {
    const uint8_t* const* tap = g.at + first;
    const int8_t* panel = g.panel;
    for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
      const uint8_t* at[R];
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) at[r] = tap[r];
      for (int64_t done = 0; done < g.k; done += kPiece) {
        const int64_t piece = g.k - done < kPiece ? g.k - done : kPiece;
        ahead.fetch();
        accumulate<R, P>(at, piece, panel, g.panel_step, sum);
        panel += piece * kColumns;
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) at[r] += piece;
      }
    }
  }
  [[gnu::always_inline]] void end_rows(const Sums<R, P>& sum) const {
    const int64_t begin = offset(0), stride = g.y_stride;  // copies, as those of ByteRowEnd
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel)
      with_row_end(
          g.end, g.y, panel * kColumns, [&](const auto& end) __attribute__((always_inline)) {
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) end(begin + r * stride, sum[r][2 * panel], sum[r][2 * panel + 1]);
          });
  }
  // Ends the columns that are valid.
  [[gnu::noinline]] void end_part_of_rows(const Sums<R, P>& sum) const {
    for (int panel = 0; panel < P; ++panel)
      for (int r = 0; r < R; ++r)
        end_part_of_row(g.end, panel * kColumns, offset(r), g.valid, sum[r][2 * panel], sum[r][2 * panel + 1], g.y);
  }
};

template <int R, int P>
void gathered_tile(const GatheredBytes& g, int64_t first, Ahead& ahead) {
  const ByteTile<R, P> tile{g, first};
  tile.fetch_ends();
  Sums<R, P> sum;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) sum[r][i] = Ints{};
  tile.add_products(sum, ahead);
  if (g.valid == P * kColumns && row_end_suffices(g.end, g.y)) return tile.end_rows(sum);
  Sums<R, P> copy;  // so that those above have no address and stay in registers
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < 2 * P; ++i) copy[r][i] = sum[r][i];
  tile.end_part_of_rows(copy);
}

template <int P, int R = kRows / P>
void rows_of_tile(const GatheredBytes& g, int64_t rows, int64_t first, Ahead& ahead) {
  if (rows == R)
    gathered_tile<R, P>(g, first, ahead);
  else if constexpr (R > 1)
    rows_of_tile<P, R - 1>(g, rows, first, ahead);
}

// P panels: the rows in P parts.
template <int P>
void gathered_panels(const GatheredBytes& g) {
  const int64_t parts = g.rows > kRows / P ? P : 1, rows = (g.rows + parts - 1) / parts;
  Ahead ahead(g.upcoming, parts * g.taps * ((g.k + kPiece - 1) / kPiece));
  for (int64_t first = 0; first < g.rows; first += rows)
    rows_of_tile<P>(g, g.rows - first < rows ? g.rows - first : rows, first, ahead);
}

void gathered_rows(const GatheredBytes& g) {
  if constexpr (kPanels > 1)
    if (g.valid > kColumns) return gathered_panels<kPanels>(g);
  gathered_panels<1>(g);
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

ByteProductKernels byte_product_kernels() { return {kRows, kColumns, kPanels, gathered_rows, quantize}; }

}  // namespace dtrain::cpu::DT_ISA
