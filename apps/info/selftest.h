// dtrain-info --selftest: whether a machine computes what it should, and is in the state to.
#pragma once

#include <string>

namespace dtrain::info {

// Prints what it looks at. Throws Error: numeric where a convolution is wrong, else resource where a GPU is missing
// though `device` is "gpu", or should not be trained on.
void self_test(const std::string& device);

}  // namespace dtrain::info
