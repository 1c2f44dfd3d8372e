// Allocators over the CUDA runtime, without a cache: CachingAllocator goes on top.
#pragma once

#include <memory>

#include "libdtrain/core/memory.h"

namespace dtrain::cuda {

std::unique_ptr<Allocator> make_device_memory();
// Of the host, pinned: the device copies from and to it at full speed.
std::unique_ptr<Allocator> make_pinned_memory();

}  // namespace dtrain::cuda
