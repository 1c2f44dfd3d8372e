// Numbers for tests of kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "libdtrain/core/rng.h"

namespace dtrain {

// From -1 to 1; another stream gives others.
inline std::vector<float> drawn(int64_t count, uint64_t stream) {
  RandomStream draws(7, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = draws.uniform(-1, 1);
  return values;
}

}  // namespace dtrain
