#include "apps/serve/room.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "libdtrain/core/error.h"

namespace dtrain::serve {

Room::Share::~Share() {
  if (room_ == nullptr) return;
  const std::lock_guard lock(room_->mutex_);
  room_->taken_ -= bytes_;
  room_->changed_.notify_all();
}

Room::Share Room::Share::part(size_t bytes) {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  return {room_, bytes};
}

Room::Share Room::take(size_t bytes, bool (*stop)()) {
  std::unique_lock lock(mutex_);
  const uint64_t turn = next_++;
  turns_.insert(turn);
  const auto is_free = [&] { return *turns_.begin() == turn && (taken_ == 0 || taken_ + bytes <= bytes_); };
  while (!is_free() && !stop()) changed_.wait_for(lock, std::chrono::milliseconds(100));
  const bool granted = is_free();
  turns_.erase(turn);
  changed_.notify_all();
  if (!granted) throw Error(Fault::resource, "too many images wait");
  taken_ += bytes;
  return {this, bytes};
}

void return_memory_of_requests() {
  mallopt(M_ARENA_MAX, 4);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

}  // namespace dtrain::serve
