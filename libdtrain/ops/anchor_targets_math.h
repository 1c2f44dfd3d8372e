// Targets of one anchor, shared by the CPU and CUDA kernels.
#pragma once

#include "dtrain/ops/match_boxes.h"
#include "libdtrain/ops/box_math.h"

namespace dtrain {

struct AnchorTargetPointers {
  float *labels, *drawn, *objects, *deltas;
};

DT_HD inline bool is_drawn(int32_t match) { return match != kIgnored; }

// Anchor `i` over all images; `truth`: ground-truth boxes of its image.
DT_HD inline void write_anchor_target(const AnchorTargetPointers& out, int64_t i, int32_t match, const float* truth,
                                      const float* anchor, const BoxCoder& coder) {
  const bool object = match >= 0;
  BoxDeltas deltas{0, 0, 0, 0};
  if (object) deltas = encode_box(coder, box_at(truth + int64_t{4} * match), box_at(anchor));
  out.labels[i] = out.objects[i] = object ? 1.0f : 0.0f;
  out.drawn[i] = is_drawn(match) ? 1.0f : 0.0f;
  float* const to = out.deltas + 4 * i;
  to[0] = deltas.x;
  to[1] = deltas.y;
  to[2] = deltas.w;
  to[3] = deltas.h;
}

}  // namespace dtrain
