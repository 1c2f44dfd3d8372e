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
class Room {
 public:
  // RAII reservation; releases its bytes. The budget must outlive it.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : room_(std::exchange(other.room_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(room_, other.room_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share();
    size_t bytes() const { return bytes_; }
    // Splits off `bytes`, or everything if it has fewer.
    Share part(size_t bytes);

   private:
    friend class Room;
    Share(Room* room, size_t bytes) : room_(room), bytes_(bytes) {}
    Room* room_ = nullptr;
    size_t bytes_ = 0;
  };

  explicit Room(size_t bytes) : bytes_(bytes) {}
  Room(const Room&) = delete;

  // Waits until `bytes` are available, first come, first served. A request beyond the whole budget is granted while
  // nothing else is reserved. Throws Error(Fault::resource) once stop(), called every 100 ms, returns true.
  Share take(size_t bytes, bool (*stop)());

 private:
  const size_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t taken_ = 0;
  uint64_t next_ = 0;
  std::set<uint64_t> turns_;  // waiting requests
};

// Limits glibc's arenas: any of a hundred threads may handle the largest request, and glibc keeps freed memory in up to
// 8 arenas per core and raises its mmap threshold, so that resident memory would grow for hours.
void return_memory_of_requests();

}  // namespace dtrain::serve
