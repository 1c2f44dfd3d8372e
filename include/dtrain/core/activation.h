// Activation: element-wise functions that other ops fuse into their epilogue.
#pragma once

#include <cstdint>

namespace dtrain {

// relu6(x) = min(max(x, 0), 6)
enum class Activation : uint8_t { none, relu, relu6 };

}  // namespace dtrain
