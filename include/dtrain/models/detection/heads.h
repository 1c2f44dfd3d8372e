// Box and mask heads of a detector.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrain/layers.h"
#include "dtrain/models/detection/options.h"

namespace dtrain::models {

// 3x3 convolutions of `channels` channels with optional group norm and ReLU, named `path`.I.0 and `path`.I.1 as in
// torchvision. `norm_after_relu` (TensorPack) swaps ReLU and norm; the convolutions then have biases.
struct ConvTower {
  ConvTower(ParameterStore& store, const std::string& path, int count, int64_t in, int64_t channels, bool group_norm,
            bool norm_after_relu = false);
  Var operator()(Tape& tape, const Var& x) const;

  std::vector<Conv2d> convs;
  std::vector<GroupNorm> norms;  // none, or one per convolution
  bool relu_first = false;
};

// Name of linear layer `i` of a box head: fc6 and so on. After convolutions the numbering continues behind them and the
// flatten layer.
std::string linear_name(const BoxHeadOptions& options, int i);

// Classification and box regression of regions.
struct BoxHead {
  // `path`.box_head and `path`.box_predictor.
  BoxHead(ParameterStore& store, const std::string& path, int64_t channels, int64_t classes,
          const BoxHeadOptions& options);
  struct Output {
    Var logits;  // [r, classes]
    Var deltas;  // [r, 4 * classes], class by class, or [r, 4] if class-agnostic
  };
  // regions [r, resolution, resolution, channels], or [r, channels] where the resolution is 1
  Output operator()(Tape& tape, const Var& regions) const;

  ConvTower tower;
  std::vector<Linear> linears;
  Linear cls_score, bbox_pred;
};

// One mask per class, at twice the resolution of the region's features.
struct MaskHead {
  // `path`.mask_head and `path`.mask_predictor.
  MaskHead(ParameterStore& store, const std::string& path, int64_t channels, int64_t classes,
           const MaskHeadOptions& options);
  // regions [r, s, s, channels] -> logits [r, 2 s, 2 s, classes]
  Var operator()(Tape& tape, const Var& regions) const;

  ConvTower tower;
  ConvTranspose2d conv5_mask;
  Conv2d mask_fcn_logits;
};

}  // namespace dtrain::models
