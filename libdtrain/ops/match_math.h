// What a box is matched with, and the random keys by which boxes are drawn: shared by the CPU and the CUDA arm.
#pragma once

#include "libdtrain/core/host_device.h"
#include "libdtrain/core/rng.h"
#include "libdtrain/ops/match_boxes.h"

namespace dtrain {

// The entry of a box whose largest IoU is `best`, with ground truth `truth`, out of more than none. `kept`: it is as
// large as any box has with some ground truth.
DT_HD inline int32_t match_of(const MatchOptions& o, float best, int32_t truth, bool kept) {
  if (kept && !(o.negative_last && best < o.negative)) return truth;
  return best < o.negative ? kBackground : best < o.positive ? kIgnored : truth;
}

// A count from device memory, within what there is room for.
DT_HD inline int64_t within(int64_t count, int64_t room) { return count < 0 ? 0 : count < room ? count : room; }

// The random words by which the boxes of one image are drawn; those with the smallest ones are.
class DrawKeys {
 public:
  DT_HD DrawKeys(uint64_t seed, uint64_t step, uint64_t stream, uint64_t row) : stream_(stream) {
    const Philox::Block words = Philox::block(seed, stream, step << 32 | (row & 0xffffffff));
    image_ = uint64_t{words[1]} << 32 | words[0];
  }
  // Those of boxes [4 * block, 4 * block + 4).
  DT_HD Philox::Block block(int64_t block) const {
    return Philox::block(image_, stream_, static_cast<uint64_t>(block));
  }
  // A box and its word as one number, no two of which are equal: the smaller word, then the lower box, is smaller.
  DT_HD static uint64_t key(uint32_t word, int64_t box) { return uint64_t{word} << 32 | static_cast<uint64_t>(box); }

 private:
  uint64_t stream_, image_;
};

}  // namespace dtrain
