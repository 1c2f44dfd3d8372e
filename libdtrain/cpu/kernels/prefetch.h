// What kernels bring into the cache while they compute.
#pragma once

#include <cstdint>

namespace dtrain::cpu {

// Memory that is read soon; none where `bytes` is 0.
struct PrefetchRange {
  const void* from = nullptr;
  int64_t bytes = 0;
};

}  // namespace dtrain::cpu
