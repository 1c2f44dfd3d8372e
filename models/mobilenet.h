// MobileNet v2 (Sandler et al. 2018, table 2, width 1), with torchvision's parameter names and TensorFlow's SAME
// padding at strides.
#pragma once

#include <vector>

#include "dtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

class MobileNet {
 public:
  // `statistics`: see BuildInputs.
  MobileNet(ParameterStore& store, Trace& trace, int64_t classes, Communicator* statistics);
  // [n, h, w, 3] -> [n, classes]; image size as at the start of the trace.
  Var operator()(Tape& tape, const Var& x) const;

 private:
  // Inverted residual: 1x1 expansion, depthwise convolution and linear 1x1 projection.
  struct Block {
    std::vector<ConvBnAct> layers;
    bool residual;
  };

  std::vector<Block> blocks_;  // the first and the last consist of one layer
  Linear classifier_;
};

// mobilenet: for ImageNet.
std::vector<Entry> mobilenet_entries();

}  // namespace dtrain::models
