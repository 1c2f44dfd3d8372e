#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/emulation/emulation.h"
#include "tests/emulation/runtime.h"

namespace emulation {
namespace {

constexpr size_t kAlignment = 256;

// Blocks of one kind of memory, by address.
class Blocks {
 public:
  bool allocate(void** block, size_t bytes) {
    *block = nullptr;
    if (bytes == 0) return true;
    if (posix_memalign(block, kAlignment, bytes) != 0) return false;
    std::memset(*block, 0xff, bytes);
    bytes_[reinterpret_cast<std::uintptr_t>(*block)] = bytes;
    in_use_ += bytes;
    return true;
  }
  bool release(void* block) {
    if (block == nullptr) return true;
    const auto found = bytes_.find(reinterpret_cast<std::uintptr_t>(block));
    if (found == bytes_.end()) return false;
    in_use_ -= found->second;
    bytes_.erase(found);
    std::free(block);
    return true;
  }
  enum class Place { outside, inside, across };
  Place place_of(const void* from, size_t bytes) const {
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    auto block = bytes_.upper_bound(address);
    if (block == bytes_.begin()) return Place::outside;
    --block;
    if (address >= block->first + block->second) return Place::outside;
    return address + bytes <= block->first + block->second ? Place::inside : Place::across;
  }
  size_t in_use() const { return in_use_; }

 private:
  std::map<std::uintptr_t, size_t> bytes_;
  size_t in_use_ = 0;
};

Blocks& device_blocks() {
  static Blocks blocks;
  return blocks;
}
Blocks& pinned_blocks() {
  static Blocks blocks;
  return blocks;
}
size_t device_bytes = size_t{8} << 30;

cudaError_t check_end(const void* p, size_t bytes, bool on_device) {
  const Blocks::Place device = device_blocks().place_of(p, bytes);
  if (device == Blocks::Place::across || pinned_blocks().place_of(p, bytes) == Blocks::Place::across)
    return cudaErrorInvalidValue;
  return (device == Blocks::Place::inside) == on_device ? cudaSuccess : cudaErrorInvalidValue;
}

// Each end lies where `kind` says, within one block.
cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const cudaError_t error = check_end(to, bytes, to_device);
  return error == cudaSuccess ? check_end(from, bytes, from_device) : error;
}

bool is_pageable(const void* p) {
  return device_blocks().place_of(p, 1) == Blocks::Place::outside &&
         pinned_blocks().place_of(p, 1) == Blocks::Place::outside;
}

cudaError_t allocate(Blocks& blocks, void** block, size_t bytes) {
  if (const cudaError_t error = refuse_while_capturing(); error != cudaSuccess) return error;
  const bool fits = &blocks != &device_blocks() || blocks.in_use() + bytes <= device_bytes;
  return fits && blocks.allocate(block, bytes) ? cudaSuccess : cudaErrorMemoryAllocation;
}

// All that is queued may use it.
cudaError_t release(Blocks& blocks, void* block) {
  if (const cudaError_t error = refuse_while_capturing(); error != cudaSuccess) return error;
  drain_all();
  return blocks.release(block) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

void set_device_memory(size_t bytes) { device_bytes = bytes; }

}  // namespace emulation

using emulation::Call;
using emulation::report;

cudaError_t cudaMalloc(void** block, size_t bytes) {
  const Call call;
  return report(emulation::allocate(emulation::device_blocks(), block, bytes));
}

cudaError_t cudaFree(void* block) {
  const Call call;
  return report(emulation::release(emulation::device_blocks(), block));
}

cudaError_t cudaMallocHost(void** block, size_t bytes) {
  const Call call;
  return report(emulation::allocate(emulation::pinned_blocks(), block, bytes));
}

cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned int) { return cudaMallocHost(block, bytes); }

cudaError_t cudaFreeHost(void* block) {
  const Call call;
  return report(emulation::release(emulation::pinned_blocks(), block));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Call call;
  *total = emulation::device_bytes;
  *free = emulation::device_bytes - emulation::device_blocks().in_use();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  const Call call;
  const CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = emulation::check_copy(to, from, bytes, kind); error != cudaSuccess)
    return report(error);
  const bool from_pageable = emulation::is_pageable(from), to_pageable = emulation::is_pageable(to);
  // A graph would read or write memory that may be gone.
  if (stream->capture && (from_pageable || to_pageable)) {
    stream->capture->invalid = true;
    return report(cudaErrorStreamCaptureUnsupported);
  }
  if (from_pageable) {  // read before the call returns
    const auto* first = static_cast<const unsigned char*>(from);
    return emulation::enqueue(handle, [to, staged = std::vector<unsigned char>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  }
  const cudaError_t error = emulation::enqueue(handle, [=] { std::memmove(to, from, bytes); });
  return error == cudaSuccess && to_pageable ? cudaStreamSynchronize(handle) : error;  // written before it returns
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const Call call;
  if (const cudaError_t error = emulation::refuse_while_capturing(); error != cudaSuccess) return report(error);
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  const Call call;
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = emulation::check_end(to, bytes, true); error != cudaSuccess) return report(error);
  return emulation::enqueue(stream, [=] { std::memset(to, byte, bytes); });
}

cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  const Call call;
  if (const cudaError_t error = emulation::refuse_while_capturing(); error != cudaSuccess) return report(error);
  return cudaMemsetAsync(to, byte, bytes, nullptr);
}
