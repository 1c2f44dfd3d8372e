// VGG without batch norm (Simonyan and Zisserman 2014, columns A, D and E), with torchvision's parameter names.
#pragma once

#include <vector>

#include "libdtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

// Works at any image size from 32 up: the first linear layer takes what the last pooling leaves (7 x 7 at 224).
class Vgg {
 public:
  // `convs`: 3x3 convolutions in each of the five stages.
  Vgg(ParameterStore& store, Trace& trace, const std::vector<int>& convs, int64_t classes);
  // [n, h, w, 3] -> [n, classes]
  Var operator()(Tape& tape, const Var& x) const;

 private:
  std::vector<std::vector<Conv2d>> stages_;
  std::vector<Linear> linears_;
};

// The models of columns A, D and E.
std::vector<Entry> vgg_entries();

}  // namespace dtrain::models
