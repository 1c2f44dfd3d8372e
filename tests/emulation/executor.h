// Executes a kernel's threads, block by block.
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace emulation {

// Smaller than any real device, to reveal assumptions about its size.
inline constexpr size_t kMultiprocessors = 4, kWarpLanes = 32;
inline constexpr size_t kMostThreadsPerBlock = 1024, kMostThreadsPerMultiprocessor = 2048;
inline constexpr size_t kMostBlocksPerMultiprocessor = 32;
inline constexpr unsigned kMostThreadsPerAxis[] = {1024, 1024, 64}, kMostBlocksPerAxis[] = {0x7fffffff, 65535, 65535};
inline constexpr size_t kSharedBytes = 48 << 10, kMostSharedBytes = 227 << 10;  // per block, by default and with opt-in
inline constexpr size_t kSharedPerMultiprocessor = 228 << 10, kReservedSharedPerBlock = 1 << 10;

inline size_t count_of(dim3 extents) { return size_t{extents.x} * extents.y * extents.z; }

struct Kernel {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;
  std::function<void()> thread;  // body of each thread; reads threadIdx etc.
};

// Shared memory is filled with 0xff before: NaN, -1.
void run(const Kernel& kernel);

}  // namespace emulation
