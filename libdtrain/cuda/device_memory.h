// Allocators over the CUDA runtime, without a cache: CachingAllocator goes on top. Any thread may use them.
#pragma once

#include <memory>

#include "dtrain/core/memory.h"

namespace dtrain::cuda {

std::unique_ptr<Allocator> make_device_memory(int device);
// Pinned host memory, for full-speed copies from and to `device`.
std::unique_ptr<Allocator> make_pinned_memory(int device);

}  // namespace dtrain::cuda
