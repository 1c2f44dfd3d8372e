// Memory budget of images in requests, and allocator settings.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

namespace dtrain::serve {

// Budget of bytes, reserved before images are decoded and released after inference, because images may have a thousand
// times the bytes of their request.
class MemoryBudget {
 public:
  // RAII reservation; releases its bytes. The budget must outlive it.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reservation();
    size_t bytes() const { return bytes_; }
    // Splits off `bytes`, or everything if it has fewer.
    Reservation split(size_t bytes);

   private:
    friend class MemoryBudget;
    Reservation(MemoryBudget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}
    MemoryBudget* budget_ = nullptr;
    size_t bytes_ = 0;
  };

  explicit MemoryBudget(size_t bytes) : bytes_(bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;

  // Waits until `bytes` are available, first come, first served. A request beyond the whole budget is granted while
  // nothing else is reserved. Throws Error(Fault::resource) once stop(), called every 100 ms, returns true.
  Reservation reserve(size_t bytes, bool (*stop)());

 private:
  const size_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t reserved_ = 0;
  uint64_t next_ = 0;
  std::set<uint64_t> waiting_;  // waiting requests
};

// Limits glibc's arenas: any of a hundred threads may handle the largest request, and glibc keeps freed memory in up to
// 8 arenas per core and raises its mmap threshold, so that resident memory would grow for hours.
void limit_malloc_arenas();

}  // namespace dtrain::serve
