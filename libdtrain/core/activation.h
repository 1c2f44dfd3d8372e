// The activations that other ops apply to what they write.
#pragma once

#include <cstdint>

namespace dtrain {

// relu6(x) = min(max(x, 0), 6)
enum class Activation : uint8_t { none, relu, relu6 };

}  // namespace dtrain
