// Feature pyramid network (Lin et al. 2017) over the stages of a backbone.
#pragma once

#include <string>
#include <vector>

#include "dtrain/layers.h"

namespace dtrain::models {

struct Fpn {
  // Layers have torchvision's names: `path`.inner_blocks.I and `path`.layer_blocks.I with .0 for the convolution and .1
  // for its group norm, if any. in_channels: channels of each stage; strides double from stage to stage.
  Fpn(ParameterStore& store, const std::string& path, const std::vector<int64_t>& in_channels, int64_t channels,
      bool group_norm = false);
  // Outputs of the stages -> one map of `channels` channels per stage, and one more of half the last resolution.
  std::vector<Var> operator()(Tape& tape, const std::vector<Var>& stages) const;

  std::vector<Conv2d> inner, layer;
  std::vector<GroupNorm> inner_norms, layer_norms;  // none, or one per convolution
};

}  // namespace dtrain::models
