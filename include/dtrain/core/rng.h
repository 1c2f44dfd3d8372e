// Philox-4x32-10 counter-based random number generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011), identical on host and device. Values depend on (seed, stream, counter) only, never on threads or call order.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

struct Philox {
  using Block = std::array<uint32_t, 4>;

  // Four independent 32-bit words for (seed, stream, counter).
  DT_HD static Block block(uint64_t seed, uint64_t stream, uint64_t counter) {
    uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return {c0, c1, c2, c3};
  }
};

// 24 random bits as a float in [0, 1).
DT_HD inline float unit_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Random sequence of one (seed, stream), e.g. per sample, parameter or test.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint32_t next() {
    if (used_ == 4) {
      block_ = Philox::block(seed_, stream_, counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  uint64_t next64() {
    const uint64_t high = next();
    return high << 32 | next();
  }
  // [0, 1)
  float uniform() { return unit_float(next()); }
  // [low, high)
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  // [0, bound), unbiased (Lemire 2019)
  uint32_t below(uint32_t bound) {
    uint64_t product = uint64_t{next()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = -bound % bound;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }
  // Standard normal (Box-Muller).
  float normal() {
    const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform()));
    return radius * std::cos(6.283185307f * uniform());
  }

 private:
  uint64_t seed_, stream_, counter_ = 0;
  Philox::Block block_{};
  int used_ = 4;
};

}  // namespace dtrain
