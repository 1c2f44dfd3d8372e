// Most probable classes.
#pragma once

#include <cstddef>
#include <vector>

namespace dtrain::cli {

// Classes by descending probability, then ascending index; at most `count`.
std::vector<size_t> ranking(const std::vector<float>& probabilities, size_t count);

}  // namespace dtrain::cli
