// The algorithms of conv2d on a CPU: which one a shape gets, and why not another.
#pragma once

#include <string>
#include <vector>

#include "dtrain/core/context.h"
#include "dtrain/ops/conv2d.h"

namespace dtrain {

// An entry of the ordered list of a pass, from which the first that applies is taken.
struct Conv2dAlgorithm {
  std::string name;    // as in profiles and in CpuOptions::conv_algorithm, e.g. "winograd"
  bool taken = false;  // by a convolution of this shape
  std::string reason;  // why it is not taken
};

// "forward", "dgrad" and "wgrad" of training in f32 and bf16; "inference" in f32, bf16 and u8 (int8), whose weights are
// packed once; and "bn_grad", both gradients of a convolution before a batch norm.
std::vector<std::string> conv2d_passes();
// Names of all algorithms, each once.
std::vector<std::string> conv2d_algorithm_names();

// The list of a pass for images x [n, h, w, c] and weights w [k, r, s, c / groups], in the order of preference.
// sparse_grad is taken only if most rows of the gradient are zero. Inference that is computed as in training has the
// list of forward. Throws Error for a GPU, a pass without this type, or shapes that do not fit.
std::vector<Conv2dAlgorithm> conv2d_algorithms(const Context&, const std::string& pass, const Shape& x, const Shape& w,
                                               const Conv2dOptions&, DType);

}  // namespace dtrain
