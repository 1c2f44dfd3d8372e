// Matching rule and random sampling keys of boxes, shared by the CPU and CUDA kernels.
#pragma once

#include "dtrain/core/host_device.h"
#include "dtrain/core/rng.h"
#include "dtrain/ops/match_boxes.h"

namespace dtrain {

// Entry of a box whose largest IoU is `best`, with ground truth `truth` of at least one. `kept`: `best` is the maximum
// over boxes for some ground truth.
DT_HD inline int32_t match_of(const MatchOptions& o, float best, int32_t truth, bool kept) {
  if (kept && !(o.negative_last && best < o.negative)) return truth;
  return best < o.negative ? kBackground : best < o.positive ? kIgnored : truth;
}

// Clamps a count from device memory to the capacity.
DT_HD inline int64_t within(int64_t count, int64_t room) { return count < 0 ? 0 : count < room ? count : room; }

// Random sampling keys of the boxes of one image; the smallest are sampled.
class DrawKeys {
 public:
  DT_HD DrawKeys(uint64_t seed, uint64_t step, uint64_t stream, uint64_t row) : stream_(stream) {
    const Philox::Block words = Philox::block(seed, stream, step << 32 | (row & 0xffffffff));
    image_ = uint64_t{words[1]} << 32 | words[0];
  }
  // Keys of boxes [4 * block, 4 * block + 4).
  DT_HD Philox::Block block(int64_t block) const {
    return Philox::block(image_, stream_, static_cast<uint64_t>(block));
  }
  // Unique 64-bit key: random word first, then box index.
  DT_HD static uint64_t key(uint32_t word, int64_t box) { return uint64_t{word} << 32 | static_cast<uint64_t>(box); }

 private:
  uint64_t stream_, image_;
};

}  // namespace dtrain
