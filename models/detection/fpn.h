// Feature pyramid (Lin et al. 2017) over the stages of a backbone.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/layers.h"

namespace dtrain::models {

struct Fpn {
  // `path`.inner_blocks.I and `path`.layer_blocks.I, as torchvision names them, .0 for the convolution and .1 for its
  // group norm, if asked for. in_channels: those of each stage, of which each has twice the stride of the one before.
  Fpn(ParameterStore& store, const std::string& path, const std::vector<int64_t>& in_channels, int64_t channels,
      bool group_norm = false);
  // What the stages give, to as many maps of `channels` channels and one more, of half the last one's resolution.
  std::vector<Var> operator()(Tape& tape, const std::vector<Var>& stages) const;

  std::vector<Conv2d> inner, layer;
  std::vector<GroupNorm> inner_norms, layer_norms;  // none, or one per convolution
};

}  // namespace dtrain::models
