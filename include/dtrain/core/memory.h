// Allocators: their interface, host memory, the caching pool, and reference-counted storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace dtrain {

// Alignment of all blocks, bytes.
inline constexpr size_t kAlignment = 256;

// Address space kept free when tensor memory is mapped, for allocations that cannot report failure: JIT compilers of
// libraries, new threads, the heap.
inline constexpr size_t kSpareAddressSpace = size_t{64} << 20;
// Throws Error(Fault::resource) if no more than that is free; `what` names the caller.
void require_address_space(const char* what);

struct MemoryStats {
  size_t in_use = 0;          // bytes allocated
  size_t peak_in_use = 0;     // maximum of in_use
  size_t reserved = 0;        // bytes held from the system
  size_t limit = SIZE_MAX;    // maximum of reserved
  uint64_t system_calls = 0;  // requests for memory to the system
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least `bytes` bytes, kAlignment-aligned, uninitialised. Throws Error(Fault::resource).
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) noexcept = 0;
  virtual MemoryStats stats() const = 0;
};

// Pages from the system; huge pages where available.
class HostAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  MemoryStats stats() const override;

 private:
  mutable std::mutex mutex_;
  MemoryStats stats_;
};

// Caching allocator: best fit with splitting and coalescing, so that no op touches fresh pages after the first step;
// page faults cost more than most ops. Thread-safe. `cap_bytes` limits its reserved memory.
class CachingAllocator final : public Allocator {
 public:
  enum class Spare {
    give_back,  // before running out of memory, unused segments go back to the system
    keep,       // blocks stay mapped: their addresses are in a CUDA graph
    none,       // no caching: one allocation of the exact size per block, for memory checkers
  };
  explicit CachingAllocator(std::unique_ptr<Allocator> system, size_t cap_bytes = SIZE_MAX,
                            Spare spare = Spare::give_back);
  ~CachingAllocator() override;
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  MemoryStats stats() const override;
  // Returns unused segments to the system.
  void trim();
  // Limits reserved memory from now on.
  void set_limit(size_t bytes);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

// Standard-library allocator over an Allocator.
template <class T>
struct ContainerMemory {
  using value_type = T;
  std::shared_ptr<Allocator> from;
  T* allocate(size_t count) { return static_cast<T*>(from->allocate(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { from->release(block, count * sizeof(T)); }
  bool operator==(const ContainerMemory&) const = default;
};

// Block returned to its allocator with the last Tensor that refers to it.
class Storage {
 public:
  Storage(std::shared_ptr<Allocator> allocator, size_t bytes)
      : allocator_(std::move(allocator)), data_(allocator_->allocate(bytes)), bytes_(bytes) {}
  ~Storage() { allocator_->release(data_, bytes_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  void* data_;
  size_t bytes_;
};

// Size of a Tensor in an arena: rounded up to kAlignment.
constexpr size_t align_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace dtrain
