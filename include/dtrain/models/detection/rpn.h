// Region proposal network (Ren et al. 2015) over the levels of a pyramid, or a single map.
#pragma once

#include <string>
#include <vector>

#include "dtrain/layers.h"
#include "dtrain/models/detection/canvas.h"
#include "dtrain/models/detection/truth.h"

namespace dtrain::models {

struct Proposals {
  Tensor boxes;     // [n, p, 4] f32, by descending score; 0 beyond the count
  Tensor counts;    // [n] i32
  Tensor scores{};  // [n, p] f32, logits; only for evaluation
};

struct Rpn {
  // Layers have torchvision's names: `path`.head.conv.0.0, `path`.head.cls_logits and `path`.head.bbox_pred.
  Rpn(ParameterStore& store, const std::string& path, int64_t channels, const RpnOptions& options);

  // Outputs per level: logits [n, h, w, a] and deltas [n, h, w, 4 a], anchor by anchor.
  struct Output {
    std::vector<Var> logits, deltas;
  };
  Output operator()(Tape& tape, const std::vector<Var>& maps) const;

  // Top-scoring boxes after non-maximum suppression, without gradient. sizes [n, 2] f32.
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
