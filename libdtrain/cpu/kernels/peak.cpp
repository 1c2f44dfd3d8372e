#include "libdtrain/cpu/kernels/peak.h"

#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/isa/isa.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Enough sums for two units of a latency of up to five cycles, in the sixteen registers of AVX2.
constexpr int kSums = 12;

// `rounds` rounds of next(sum) for each of the sums, which begin at their numbers; the sum of their first lanes.
template <class Next>
[[gnu::always_inline]] inline float sum_after(int64_t rounds, const Next& next) {
  Floats sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = Floats{} + static_cast<float>(i);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = next(sums[i]);
      keep(sums[i]);  // each is computed, and none becomes an element of a wider loop
    }
  Floats sum{};
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sum += sums[i];
  return sum[0];
}

double multiply_add(int64_t rounds, float* sink) {
  const Floats factor = Floats{} + 0.5f, addend = Floats{} + 1.0f;
  *sink = sum_after(rounds, [&](const Floats& sum) { return sum * factor + addend; });
  return 2.0 * kSums * kLanes * static_cast<double>(rounds);
}

#if defined(__AMX_TILE__)
// By tiles of 16 rows and 16 columns of sums, each of 32 products.
double multiply_add_pairs(int64_t rounds, float* sink) {
  constexpr int64_t kTiles = 4, kProducts = 2 * kTileWords, kElements = kTileRows * kTileWords;
  uint16_t halves[kTileRows][kProducts];
  for (auto& row : halves)
    for (uint16_t& half : row) half = 0x3f00;  // 0.5 in bf16
  float sums[kTileRows][kTileWords];
  tile_configure(gemm_tiles(kTileRows, kTileWords));
  tile_load<4>(halves, sizeof halves[0]);
  tile_load<5>(halves, sizeof halves[0]);
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  for (int64_t round = 0; round < rounds; ++round) {
    tile_dot_bf16<0>();
    tile_dot_bf16<1>();
    tile_dot_bf16<2>();
    tile_dot_bf16<3>();
  }
  *sink = 0;
  tile_store<0>(sums, sizeof sums[0]);
  *sink += sums[0][0];
  tile_store<1>(sums, sizeof sums[0]);
  *sink += sums[0][0];
  tile_store<2>(sums, sizeof sums[0]);
  *sink += sums[0][0];
  tile_store<3>(sums, sizeof sums[0]);
  *sink += sums[0][0];
  tile_release();
  return 2.0 * kTiles * kElements * kProducts * static_cast<double>(rounds);
}
#elif defined(__AVX512BF16__)
double multiply_add_pairs(int64_t rounds, float* sink) {
  constexpr uint32_t kHalves = 0x3f003f00;  // 0.5 in bf16, twice
  const Pairs halves = broadcast_pair(&kHalves);
  *sink = sum_after(rounds, [&](const Floats& sum) {
    return dot_pairs(sum, halves, halves);
  });
  return 4.0 * kSums * kLanes * static_cast<double>(rounds);
}
#endif

}  // namespace

PeakKernels peak_kernels() {
  PeakKernels kernels{multiply_add};
#ifdef __AVX512BF16__
  kernels.multiply_add_pairs = multiply_add_pairs;
#endif
  return kernels;
}

}  // namespace dtrain::cpu::DT_ISA
