// Building blocks shared by Inception-v3 and Inception-v4.
#pragma once

#include <string>
#include <vector>

#include "models/chain.h"
#include "models/inception.h"

namespace dtrain::models {

// Convolutions without padding, with stride 1 and 2.
inline const ConvForm kInside{.border = Border::valid};
inline const ConvForm kHalving{.stride = 2, .border = Border::valid};

inline LayerDefaults inception_defaults() {
  return {.batch_norm = {.epsilon = 1e-3f, .momentum = 0.999f}, .norm_scales = false};
}

// Applies convolutions with these kernels, named `<path>a`, `<path>b` and so on, to `net` in parallel and concatenates
// them.
inline void fork(Chain& net, const std::string& path, int64_t channels, const std::vector<Size2>& kernels) {
  std::vector<Chain> branches;
  for (size_t i = 0; i < kernels.size(); ++i)
    branches.push_back(net.branch().basic_conv(path + static_cast<char>('a' + i), channels, kernels[i]));
  net.join(branches);
}

ForwardFunction inception3(const BuildInputs& in);
ForwardFunction inception4(const BuildInputs& in);

}  // namespace dtrain::models
