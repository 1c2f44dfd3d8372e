// The region proposal network (Ren et al. 2015) over the levels of a pyramid, or a single map.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/layers.h"
#include "models/detection/canvas.h"
#include "models/detection/truth.h"

namespace dtrain::models {

struct Proposals {
  Tensor boxes;     // [n, p, 4] f32, by descending score; what is beyond the count is 0
  Tensor counts;    // [n] i32
  Tensor scores{};  // [n, p] f32, logits; of proposals for evaluation alone
};

struct Rpn {
  // `path`.head.conv.0.0, `path`.head.cls_logits and `path`.head.bbox_pred, as torchvision names them.
  Rpn(ParameterStore& store, const std::string& path, int64_t channels, const RpnOptions& options);

  // What the head says of each level: logits [n, h, w, a] and deltas [n, h, w, 4 a], anchor by anchor.
  struct Output {
    std::vector<Var> logits, deltas;
  };
  Output operator()(Tape& tape, const std::vector<Var>& maps) const;

  // No gradient leads through them. sizes [n, 2] f32.
  Proposals propose(Context& context, const Output& output, const Canvas& canvas, const Tensor& sizes,
                    bool training) const;
  struct Losses {
    Var objectness, boxes;
  };
  Losses losses(Tape& tape, const Output& output, const Canvas& canvas, const DetectionTruth& truth) const;

  Conv2d conv, cls_logits, bbox_pred;
  RpnOptions options;
};

}  // namespace dtrain::models
