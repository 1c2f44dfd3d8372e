// Emulated cooperative groups: block, and grid of a cooperative launch.
#pragma once

#include "cuda_runtime.h"

namespace cooperative_groups {

class thread_block {
 public:
  static void sync(std::source_location place = std::source_location::current()) { ::__syncthreads(place); }
  static unsigned thread_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
};

class grid_group {
 public:
  static void sync(std::source_location place = std::source_location::current()) {
    emulation::meet(emulation::Meeting::grid_barrier, 0, 0, 0, 0, place);
  }
  // Only the following wait depends on an arrival.
  using arrival_token = unsigned;
  static arrival_token barrier_arrive(std::source_location place = std::source_location::current()) {
    ::__syncthreads(place);
    return {};
  }
  static void barrier_wait(arrival_token&&, std::source_location place = std::source_location::current()) {
    sync(place);
  }
  static unsigned long long block_rank() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
};

inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups
