// Where bytes come from: the allocator interface, host memory, the caching pool, and reference-counted storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace dtrain {

// Every block an Allocator of ours returns is aligned to this many bytes.
inline constexpr size_t kAlignment = 256;

// Address space that stays free when memory for tensors is mapped, for those who cannot do without and cannot say so:
// libraries that compile code as they go, new threads, the heap.
inline constexpr size_t kSpareAddressSpace = size_t{64} << 20;
// Throws Error(Fault::resource) where no more than that is free; `what` names who needs it.
void require_address_space(const char* what);

struct MemoryStats {
  size_t in_use = 0;          // bytes handed out now
  size_t peak_in_use = 0;     // the most ever handed out
  size_t reserved = 0;        // bytes held from the system
  size_t limit = SIZE_MAX;    // the most that may be reserved
  uint64_t system_calls = 0;  // times the system was asked for memory
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns at least `bytes` bytes, kAlignment-aligned, contents undefined. Throws Error(Fault::resource).
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) noexcept = 0;
  virtual MemoryStats stats() const = 0;
};

// Pages straight from the system, huge ones where it grants them.
class HostAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  MemoryStats stats() const override;

 private:
  mutable std::mutex mutex_;
  MemoryStats stats_;
};

// Keeps what is released and hands it out again (best fit, split and merged), so that after the first step no op
// touches fresh pages: a page fault costs more than most ops. Thread-safe. `cap_bytes` bounds what it reserves.
class CachingAllocator final : public Allocator {
 public:
  enum class Spare {
    give_back,  // where memory runs out, segments without a block in use go back to the system first
    keep,       // what was handed out once stays mapped: its addresses are in a captured step
    none,       // each block is the system's, of the very size asked for: slow, for tools that watch memory
  };
  explicit CachingAllocator(std::unique_ptr<Allocator> system, size_t cap_bytes = SIZE_MAX,
                            Spare spare = Spare::give_back);
  ~CachingAllocator() override;
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  MemoryStats stats() const override;
  // Gives the segments without a block in use back to the system.
  void trim();
  // Bounds what it reserves from now on.
  void set_limit(size_t bytes);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

// Lets a standard container live in the memory of an Allocator.
template <class T>
struct ContainerMemory {
  using value_type = T;
  std::shared_ptr<Allocator> from;
  T* allocate(size_t count) { return static_cast<T*>(from->allocate(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { from->release(block, count * sizeof(T)); }
  bool operator==(const ContainerMemory&) const = default;
};

// A block that is returned to its allocator when the last Tensor that refers to it is gone.
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

// Bytes that a Tensor occupies in an arena: rounded up to kAlignment.
constexpr size_t align_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace dtrain
