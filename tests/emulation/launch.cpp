#include <algorithm>
#include <map>

#include "tests/emulation/emulation.h"
#include "tests/emulation/executor.h"
#include "tests/emulation/runtime.h"

namespace emulation {
namespace {

// Limits set by cudaFuncSetAttribute.
std::map<const void*, size_t>& allowed_shared_bytes() {
  static std::map<const void*, size_t> bytes;
  return bytes;
}

size_t shared_limit(const void* kernel) {
  const auto found = allowed_shared_bytes().find(kernel);
  return found == allowed_shared_bytes().end() ? kSharedBytes : std::max(found->second, kSharedBytes);
}

size_t most_blocks = kMostBlocksPerMultiprocessor;

size_t blocks_per_multiprocessor(size_t threads, size_t shared_bytes) {
  const size_t whole_warps = (threads + kWarpLanes - 1) / kWarpLanes * kWarpLanes;
  return std::min({most_blocks, kMostThreadsPerMultiprocessor / whole_warps,
                   kSharedPerMultiprocessor / (shared_bytes + kReservedSharedPerBlock)});
}

bool within(dim3 extents, const unsigned (&most)[3]) {
  return extents.x >= 1 && extents.y >= 1 && extents.z >= 1 && extents.x <= most[0] && extents.y <= most[1] &&
         extents.z <= most[2];
}

int held_multiprocessors = 0;

// Whether all blocks of a cooperative kernel fit beside held multiprocessors.
bool finds_room(const Kernel& kernel) {
  const size_t free = kMultiprocessors - std::min(static_cast<size_t>(held_multiprocessors), kMultiprocessors);
  return count_of(kernel.grid) <= free * blocks_per_multiprocessor(count_of(kernel.block), kernel.shared_bytes);
}

cudaError_t check(const Kernel& kernel, const void* function) {
  if (function == nullptr) return cudaErrorInvalidDeviceFunction;
  const size_t threads = count_of(kernel.block);
  if (!within(kernel.grid, kMostBlocksPerAxis) || !within(kernel.block, kMostThreadsPerAxis) ||
      threads > kMostThreadsPerBlock)
    return cudaErrorInvalidConfiguration;
  if (kernel.shared_bytes > shared_limit(function)) return cudaErrorInvalidValue;
  if (kernel.cooperative &&
      count_of(kernel.grid) > kMultiprocessors * blocks_per_multiprocessor(threads, kernel.shared_bytes))
    return cudaErrorCooperativeLaunchTooLarge;
  return cudaSuccess;
}

}  // namespace

void hold_multiprocessors(int count) {
  const Call call;
  held_multiprocessors += count;
}

void set_occupancy(size_t blocks) { most_blocks = blocks; }

cudaError_t launch(const cudaLaunchConfig_t& config, const void* function, std::function<void()> thread) {
  const Call call;
  Kernel kernel{config.gridDim, config.blockDim, config.dynamicSmemBytes, false, std::move(thread)};
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id == cudaLaunchAttributeCooperative)
      kernel.cooperative = config.attrs[i].val.cooperative != 0;
    else if (config.attrs[i].id != cudaLaunchAttributeIgnore)
      return report(cudaErrorNotSupported);
  }
  if (const cudaError_t error = check(kernel, function); error != cudaSuccess) return report(error);
  if (!kernel.cooperative) return enqueue(config.stream, [kernel = std::move(kernel)] { run(kernel); });
  const auto run_in_room = [kernel = std::move(kernel)] {
    if (!finds_room(kernel)) return false;
    run(kernel);
    return true;
  };
  return enqueue_operation(config.stream, run_in_room, false);
}

}  // namespace emulation

using emulation::Call;
using emulation::report;

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const Call call;
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<size_t>(value) > emulation::kMostSharedBytes)
    return report(cudaErrorInvalidValue);
  emulation::allowed_shared_bytes()[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t shared_bytes) {
  const Call call;
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  if (threads < 1) return report(cudaErrorInvalidValue);
  const bool fits = static_cast<size_t>(threads) <= emulation::kMostThreadsPerBlock &&
                    shared_bytes <= emulation::shared_limit(kernel);
  *blocks =
      fits ? static_cast<int>(emulation::blocks_per_multiprocessor(static_cast<size_t>(threads), shared_bytes)) : 0;
  return cudaSuccess;
}
