#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tests/emulation/block.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/runtime.h"

namespace emulation {
namespace {

constexpr size_t kAlignment = 256;

size_t up_to(size_t multiple, size_t bytes) { return (bytes + multiple - 1) / multiple * multiple; }
size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// File of 0xff bytes: fresh memory is a private mapping of it, free of cost until written.
class Pattern {
 public:
  static constexpr size_t kBytes = 2 << 20;

  Pattern() : file_(memfd_create("0xff", MFD_CLOEXEC)) {
    const std::vector<unsigned char> bytes(kBytes, 0xff);
    if (file_ < 0 || write(file_, bytes.data(), kBytes) != static_cast<ssize_t>(kBytes))
      fail("no memory file: %s", std::strerror(errno));
  }
  ~Pattern() { close(file_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // Maps it over [to, to + bytes).
  bool map(char* to, size_t bytes) const {
    for (size_t done = 0; done < bytes; done += kBytes)
      if (mmap(to + done, std::min(kBytes, bytes - done), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_, 0) ==
          MAP_FAILED)
        return false;
    return true;
  }

 private:
  int file_;
};

// Blocks of one kind of memory, by address, enclosed by guard pages up to alignment; AddressSanitizer is told about the
// remainder.
class Blocks {
 public:
  bool allocate(void** block, size_t bytes, bool closed) {
    *block = nullptr;
    if (bytes == 0) return true;
    static const Pattern pattern;
    const size_t page = page_bytes(), aligned = up_to(kAlignment, bytes), span = up_to(page, aligned);
    void* memory = mmap(nullptr, span + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    char* first = static_cast<char*>(memory) + page;
    if (!pattern.map(first, span)) {
      munmap(memory, span + 2 * page);
      return false;
    }
    char* start = first + (span - aligned);
    ASAN_POISON_MEMORY_REGION(first, span);
    ASAN_UNPOISON_MEMORY_REGION(start, bytes);
    blocks_[reinterpret_cast<std::uintptr_t>(start)] = {bytes, first, span};
    in_use_ += bytes;
    *block = start;
    if (closed) open(false);
    return true;
  }
  bool release(void* block) {
    if (block == nullptr) return true;
    const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(block));
    if (found == blocks_.end()) return false;
    const Block& freed = found->second;
    in_use_ -= freed.bytes;
    ASAN_UNPOISON_MEMORY_REGION(freed.first, freed.span);
    munmap(freed.first - page_bytes(), freed.span + 2 * page_bytes());
    blocks_.erase(found);
    return true;
  }
  // Makes them accessible or not.
  void open(bool yes) const {
    for (const auto& [start, block] : blocks_)
      if (mprotect(block.first, block.span, yes ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        fail("mprotect: %s", std::strerror(errno));
  }
  enum class Place { outside, inside, across };
  Place place_of(const void* from, size_t bytes) const {
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) return Place::outside;
    --block;
    if (address >= block->first + block->second.bytes) return Place::outside;
    return address + bytes <= block->first + block->second.bytes ? Place::inside : Place::across;
  }
  size_t in_use() const { return in_use_; }

 private:
  struct Block {
    size_t bytes;
    char* first;  // start of its pages
    size_t span;
  };
  std::map<std::uintptr_t, Block> blocks_;
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
int accesses = 0;

cudaError_t check_end(const void* p, size_t bytes, bool on_device) {
  const Blocks::Place device = device_blocks().place_of(p, bytes);
  if (device == Blocks::Place::across || pinned_blocks().place_of(p, bytes) == Blocks::Place::across)
    return cudaErrorInvalidValue;
  return (device == Blocks::Place::inside) == on_device ? cudaSuccess : cudaErrorInvalidValue;
}

// Checks that both ends are where `kind` says, within one block.
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
  use_current_device();
  if (const cudaError_t error = refuse_while_capturing(); error != cudaSuccess) return error;
  const bool fits = &blocks != &device_blocks() || blocks.in_use() + bytes <= device_bytes;
  const bool closed = &blocks == &device_blocks() && streams() == Streams::deferred && accesses == 0;
  return fits && blocks.allocate(block, bytes, closed) ? cudaSuccess : cudaErrorMemoryAllocation;
}

// Enqueued work may use it: waits.
cudaError_t release(Blocks& blocks, void* block) {
  use_current_device();
  {
    const Call call;
    if (const cudaError_t error = refuse_while_capturing(); error != cudaSuccess) return error;
  }
  wait_for_all();
  const Call call;
  return blocks.release(block) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

void set_device_memory(size_t bytes) { device_bytes = bytes; }

void close_device_memory(bool closed) { device_blocks().open(!closed); }

DeviceAccess::DeviceAccess() {
  if (accesses++ == 0 && streams() == Streams::deferred) device_blocks().open(true);
}
DeviceAccess::~DeviceAccess() {
  if (--accesses == 0 && streams() == Streams::deferred) device_blocks().open(false);
}

}  // namespace emulation

using emulation::Call;
using emulation::report;

cudaError_t cudaMalloc(void** block, size_t bytes) {
  const Call call;
  return report(emulation::allocate(emulation::device_blocks(), block, bytes));
}

cudaError_t cudaFree(void* block) { return report(emulation::release(emulation::device_blocks(), block)); }

cudaError_t cudaMallocHost(void** block, size_t bytes) {
  const Call call;
  return report(emulation::allocate(emulation::pinned_blocks(), block, bytes));
}

cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned int) { return cudaMallocHost(block, bytes); }

cudaError_t cudaFreeHost(void* block) { return report(emulation::release(emulation::pinned_blocks(), block)); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Call call;
  *total = emulation::device_bytes;
  *free = emulation::device_bytes - emulation::device_blocks().in_use();
  return cudaSuccess;
}

namespace {

// `must_wait`: the caller's memory is written before the call returns.
cudaError_t queue_copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle,
                       bool& must_wait) {
  const Call call;
  const CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = emulation::check_copy(to, from, bytes, kind); error != cudaSuccess)
    return report(error);
  const bool from_pageable = emulation::is_pageable(from), to_pageable = emulation::is_pageable(to);
  // A graph would access memory that may be gone.
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
  must_wait = to_pageable;
  return emulation::enqueue(handle, [=] { std::memmove(to, from, bytes); });
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  if (bytes == 0) return cudaSuccess;
  bool must_wait = false;
  const cudaError_t error = queue_copy(to, from, bytes, kind, handle, must_wait);
  return error == cudaSuccess && must_wait ? cudaStreamSynchronize(handle) : error;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  {
    const Call call;
    if (const cudaError_t error = emulation::refuse_while_capturing(); error != cudaSuccess) return report(error);
  }
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
