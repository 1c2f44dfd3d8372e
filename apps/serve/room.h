// The memory that images of requests may take, and what the allocator keeps of it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

namespace dtrain::serve {

// Bytes, shares of which are taken before images are decoded and given back once a model is done with them: images may
// have a thousand times the bytes of their request.
class Room {
 public:
  // Gives its bytes back when it ends. The room must outlive it.
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
    // Hands `bytes` of it over, or all where it has fewer.
    Share part(size_t bytes);

   private:
    friend class Room;
    Share(Room* room, size_t bytes) : room_(room), bytes_(bytes) {}
    Room* room_ = nullptr;
    size_t bytes_ = 0;
  };

  explicit Room(size_t bytes) : bytes_(bytes) {}
  Room(const Room&) = delete;

  // Waits until there are so many bytes. Whoever asks first is served first, and more than the room has is granted
  // while nothing else is taken. Throws Error(Fault::resource) once stop(), which is called every 100 ms, is true.
  Share take(size_t bytes, bool (*stop)());

 private:
  const size_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t taken_ = 0;
  uint64_t next_ = 0;
  std::set<uint64_t> turns_;  // of those who wait
};

// Any of a hundred threads may serve the largest request. By default glibc keeps what it has taken in an arena of the
// thread, of which there are 8 per core, and takes ever larger buffers from arenas: what is resident grows for hours.
void return_memory_of_requests();

}  // namespace dtrain::serve
