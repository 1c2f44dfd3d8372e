#include "libdtrain/cpu/kernels/peak.h"

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/table.h"
#ifdef DT_AMX
#include "libdtrain/cpu/kernels/amx_accumulators.h"
#endif

namespace dtrain::cpu::DT_ISA {
namespace {

// Enough independent sums for two FMA units with a latency of five cycles, in the sixteen registers of AVX2.
constexpr int kSums = 12;

// Applies next() `rounds` times to each sum, which starts at its index; returns the total of their first lanes.
template <class Next>
[[gnu::always_inline]] inline float sum_after(int64_t rounds, const Next& next) {
  Floats sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = Floats{} + static_cast<float>(i);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = next(sums[i]);
      keep(sums[i]);
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

#ifdef DT_BF16
constexpr uint16_t kHalf = 0x3f00;  // 0.5 in bf16
#endif

#if defined(DT_AMX)
// Four tiles of 16 x 16 sums, each of 32 products.
double multiply_add_pairs(int64_t rounds, float* sink) {
  constexpr int64_t kTiles = 4, kProducts = 2 * kTileWords, kElements = kTileRows * kTileWords;
  uint16_t halves[kTileRows][kProducts];
  for (auto& row : halves)
    for (uint16_t& half : row) half = kHalf;
  float sums[2 * kTileRows][2 * kTileWords];
  tile_configure(gemm_tiles(kTileRows, kTileWords));
  tile_load<4>(halves, sizeof halves[0]);
  tile_load<5>(halves, sizeof halves[0]);
  zero_accumulators<kTiles>();
  for (int64_t round = 0; round < rounds; ++round)
    for_each_accumulator<kTiles>([](auto tile)
                                     __attribute__((always_inline)) { tile_dot<decltype(tile)::value, Bf16>(); });
  store_accumulators<kTiles>(TiledMatrix<float>{sums[0], 2 * kTileWords, kTileRows});
  tile_release();
  *sink = sums[0][0] + sums[0][kTileWords] + sums[kTileRows][0] + sums[kTileRows][kTileWords];
  return 2.0 * kTiles * kElements * kProducts * static_cast<double>(rounds);
}
#elif defined(DT_BF16)
double multiply_add_pairs(int64_t rounds, float* sink) {
  constexpr uint16_t kPair[2] = {kHalf, kHalf};
  const Pairs halves = broadcast_pair(kPair);
  *sink = sum_after(rounds, [&](const Floats& sum) { return dot_pairs(sum, halves, halves); });
  return 4.0 * kSums * kLanes * static_cast<double>(rounds);
}
#endif

}  // namespace

void add_peak(Kernels& kernels) {
  kernels.peak.multiply_add = multiply_add;
#ifdef DT_BF16
  kernels.peak.multiply_add_pairs = multiply_add_pairs;
#endif
}

}  // namespace dtrain::cpu::DT_ISA
