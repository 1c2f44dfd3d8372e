// Training targets of a dense detection head: labels and box deltas per anchor.
#pragma once

#include <tuple>

#include "dtrain/ops/boxes.h"

namespace dtrain {

// For t anchors in each of n images, f32.
struct AnchorTargets {
  Tensor labels;   // [n, t]: 1 if the anchor is positive, else 0
  Tensor drawn;    // [n, t]: 1 if the anchor was sampled for the losses, else 0
  Tensor objects;  // [n, t]: 1 if both
  Tensor deltas;   // [n, t, 4]: box deltas of the ground truth from the anchor; 0 where `objects` is 0
  Tensor count;    // [1]: sampled anchors in all images

  auto tensors() const { return std::tie(labels, drawn, objects, deltas, count); }
};

// matched [n, t] i32 after sample_matches, truth [n, g, 4], anchors [t, 4].
void anchor_targets(Context& context, const Tensor& matched, const Tensor& truth, const Tensor& anchors,
                    const BoxCoder& coder, const AnchorTargets& targets);

namespace cpu {
void anchor_targets(Context&, const Tensor& matched, const Tensor& truth, const Tensor& anchors, const BoxCoder&,
                    const AnchorTargets&);
}  // namespace cpu

namespace cuda {
decltype(cpu::anchor_targets) anchor_targets;
}  // namespace cuda

}  // namespace dtrain
