#include "apps/serve/memory_budget.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "dtrain/core/error.h"

namespace dtrain::serve {

MemoryBudget::Reservation::~Reservation() {
  if (budget_ == nullptr) return;
  const std::lock_guard lock(budget_->mutex_);
  budget_->reserved_ -= bytes_;
  budget_->changed_.notify_all();
}

MemoryBudget::Reservation MemoryBudget::Reservation::split(size_t bytes) {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  return {budget_, bytes};
}

MemoryBudget::Reservation MemoryBudget::reserve(size_t bytes, bool (*stop)()) {
  std::unique_lock lock(mutex_);
  const uint64_t turn = next_++;
  waiting_.insert(turn);
  const auto is_free = [&] { return *waiting_.begin() == turn && (reserved_ == 0 || reserved_ + bytes <= bytes_); };
  while (!is_free() && !stop()) changed_.wait_for(lock, std::chrono::milliseconds(100));
  const bool granted = is_free();
  waiting_.erase(turn);
  changed_.notify_all();
  if (!granted) throw Error(Fault::resource, "too many images wait");
  reserved_ += bytes;
  return {this, bytes};
}

void limit_malloc_arenas() {
  mallopt(M_ARENA_MAX, 4);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

}  // namespace dtrain::serve
