// MobileNet v2 (Sandler et al. 2018, table 2, width 1), with torchvision's parameter names and the padding of
// TensorFlow: strides pad at the bottom and the right.
#pragma once

#include <vector>

#include "libdtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

class MobileNet {
 public:
  // `statistics`: as BuildInputs has it.
  MobileNet(ParameterStore& store, Trace& trace, int64_t classes, Communicator* statistics);
  // [n, h, w, 3] -> [n, classes], from images of the size that the trace began with.
  Var operator()(Tape& tape, const Var& x) const;

 private:
  // Expands the channels, convolves each of them and projects what comes out to fewer: an inverted residual. Its last
  // layer has no activation.
  struct Block {
    std::vector<ConvBnAct> layers;
    bool residual;
  };

  std::vector<Block> blocks_;  // the first and the last have one layer
  Linear classifier_;
};

// mobilenet: for ImageNet.
std::vector<Entry> mobilenet_entries();

}  // namespace dtrain::models
