// Permutation: pseudo-random order of the samples of an epoch, computed per index.
#pragma once

#include <bit>
#include <cstdint>

#include "dtrain/core/rng.h"

namespace dtrain::data {

// Random permutation of [0, size) keyed by (seed, epoch): a Feistel network with Philox round functions and cycle
// walking (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Unlike a shuffle buffer or table it needs
// no memory and no start-up, and a rank resumes at any index in constant time.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch)
      : size_(size), seed_(seed), stream_(kStream + epoch), half_bits_((std::bit_width(size - 1) + 1) / 2) {}

  // Sample at `index` < size. The domain is below 4 * size, so that at most four walks are expected.
  uint64_t operator()(uint64_t index) const {
    do index = encrypt(index);
    while (index >= size_);
    return index;
  }

 private:
  static constexpr int kRounds = 8;
  // Distinct from the streams of per-sample draws, which count from 0.
  static constexpr uint64_t kStream = 0x73687566666c6521;

  uint64_t encrypt(uint64_t index) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = index >> half_bits_, right = index & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (Philox::block(seed_, stream_, round << 32 | right)[0] & mask);
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

  uint64_t size_, seed_, stream_;
  int half_bits_;
};

}  // namespace dtrain::data
