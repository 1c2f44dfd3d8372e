#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/peak.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Four tiles of 16 x 16 sums, each of 32 products.
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

}  // namespace

void add_peak_amx(Kernels& kernels) { kernels.peak.multiply_add_pairs = multiply_add_pairs; }

}  // namespace dtrain::cpu::DT_ISA
