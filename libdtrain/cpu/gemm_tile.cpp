#include "libdtrain/cpu/gemm_tile.h"

#include <algorithm>
#include <dnnl.hpp>

#include "libdtrain/cpu/simd.h"

namespace dtrain::cpu {
namespace {

// Whether 512 bits pay: as oneDNN sees it, so that its environment variable lowers both.
bool wide() {
  static const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  return wide;
}

// One tile: rows of `a` are `a_stride` floats apart and its columns `a_step`.
struct Tile {
  int64_t k;
  const float* a;
  int64_t a_stride, a_step;
  const float* panel;
  float* c;
  int64_t c_stride;
  bool add;
};

// c[0..R, 0..16] = or += a [R, k] * panel [k, 16]. At R = 6 the twelve accumulators, two vectors of B and one of A fit
// the sixteen registers of AVX2.
template <int R>
void narrow_tile(Tile t) {
  Float8 sum[R][2] = {};
  for (int64_t p = 0; p < t.k; ++p, t.a += t.a_step, t.panel += kTileColumns) {
    const Float8 b0 = load8(t.panel), b1 = load8(t.panel + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Float8 value = broadcast8(t.a[r * t.a_stride]);
      sum[r][0] += value * b0;
      sum[r][1] += value * b1;
    }
  }
  for (int r = 0; r < R; ++r, t.c += t.c_stride) {
    store8(t.c, t.add ? load8(t.c) + sum[r][0] : sum[r][0]);
    store8(t.c + 8, t.add ? load8(t.c + 8) + sum[r][1] : sum[r][1]);
  }
}

// The same in vectors of sixteen. Rows in threes share an address, so that addresses fit the registers; `kPacked` rows
// are one float apart.
template <int R, bool kPacked>
__attribute__((target("avx512f,avx512vl"))) void wide_tile(Tile t) {
  using Float16 = float __attribute__((vector_size(64)));
  const int64_t stride = kPacked ? 1 : t.a_stride;
  const float* threes[(R + 2) / 3];
  for (int i = 0; i < (R + 2) / 3; ++i) threes[i] = t.a + 3 * i * stride;
  Float16 sum[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sum[r] = Float16{};
  for (int64_t p = 0; p < t.k; ++p, t.panel += kTileColumns) {
    Float16 b;
    std::memcpy(&b, t.panel, sizeof b);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[r] += threes[r / 3][r % 3 * stride] * b;
#pragma GCC unroll 16
    for (int i = 0; i < (R + 2) / 3; ++i) threes[i] += kPacked ? kTileColumns : 1;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r, t.c += t.c_stride) {
    Float16 value = sum[r];
    if (t.add) {
      std::memcpy(&value, t.c, sizeof value);
      value += sum[r];
    }
    std::memcpy(t.c, &value, sizeof value);
  }
}

using Kernel = void (*)(Tile);

// All rows, as many at a time as the last of the kernels takes; kernels[r] takes r rows.
template <size_t N>
void run_rows(const Kernel (&kernels)[N], int64_t rows, Tile t) {
  constexpr auto kMost = static_cast<int64_t>(N) - 1;
  for (; rows > 0; rows -= kMost, t.a += kMost * t.a_stride, t.c += kMost * t.c_stride)
    kernels[std::min(rows, kMost)](t);
}

constexpr Kernel kNarrow[] = {nullptr,        narrow_tile<1>, narrow_tile<2>, narrow_tile<3>,
                              narrow_tile<4>, narrow_tile<5>, narrow_tile<6>};
constexpr Kernel kWide[] = {nullptr,
                            wide_tile<1, false>,
                            wide_tile<2, false>,
                            wide_tile<3, false>,
                            wide_tile<4, false>,
                            wide_tile<5, false>,
                            wide_tile<6, false>,
                            wide_tile<7, false>,
                            wide_tile<8, false>,
                            wide_tile<9, false>,
                            wide_tile<10, false>,
                            wide_tile<11, false>,
                            wide_tile<12, false>};

}  // namespace

void gemm_rows(int64_t rows, int64_t k, const float* a, int64_t a_stride, const float* panel, float* c,
               int64_t c_stride, bool add) {
  const Tile tile{k, a, a_stride, 1, panel, c, c_stride, add};
  wide() ? run_rows(kWide, rows, tile) : run_rows(kNarrow, rows, tile);
}

void gemm_panels(int64_t k, const float* a, const float* b, float* c, int64_t c_stride, bool add) {
  const Tile tile{k, a, 1, kTileColumns, b, c, c_stride, add};
  wide() ? wide_tile<kTileColumns, true>(tile) : run_rows(kNarrow, kTileColumns, tile);
}

}  // namespace dtrain::cpu
