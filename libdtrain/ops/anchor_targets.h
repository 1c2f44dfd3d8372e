// What a dense head, which says something of every anchor, is trained on.
#pragma once

#include <tuple>

#include "libdtrain/ops/boxes.h"

namespace dtrain {

// Of t anchors in each of n images; all f32.
struct AnchorTargets {
  Tensor labels;   // [n, t]: 1 where the anchor has an object, else 0
  Tensor drawn;    // [n, t]: 1 where the anchor was drawn for the losses, else 0
  Tensor objects;  // [n, t]: 1 where both
  Tensor deltas;   // [n, t, 4]: what the object's box is from the anchor; 0 where `objects` is
  Tensor count;    // [1]: how many were drawn, in all images

  auto tensors() const { return std::tie(labels, drawn, objects, deltas, count); }
};

// matched [n, t] i32 as sample_matches leaves it, truth [n, g, 4], anchors [t, 4].
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
