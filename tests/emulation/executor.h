// Runs the threads of a kernel, block by block.
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace emulation {

// The device is smaller than any real one: that shows what depends on its size.
inline constexpr size_t kMultiprocessors = 4, kWarpLanes = 32;
inline constexpr size_t kMostThreadsPerBlock = 1024, kMostThreadsPerMultiprocessor = 2048;
inline constexpr size_t kMostBlocksPerMultiprocessor = 32;
inline constexpr unsigned kMostThreadsPerAxis[] = {1024, 1024, 64}, kMostBlocksPerAxis[] = {0x7fffffff, 65535, 65535};
inline constexpr size_t kSharedBytes = 48 << 10, kMostSharedBytes = 227 << 10;  // per block, without and with asking
inline constexpr size_t kSharedPerMultiprocessor = 228 << 10, kReservedSharedPerBlock = 1 << 10;

inline size_t count_of(dim3 extents) { return size_t{extents.x} * extents.y * extents.z; }

struct Kernel {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;
  std::function<void()> thread;  // what each thread runs; it reads threadIdx and the like
};

// All shared memory is filled with 0xff first: NaN, -1.
void run(const Kernel& kernel);

}  // namespace emulation
