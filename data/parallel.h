// Parallel loop over files, whose duration is bound by I/O latency and not by the CPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dtrain::data {

inline constexpr size_t kFileThreads = 16;

// Calls body(i) for i < count from up to kFileThreads threads; rethrows the error of the smallest i.
template <class Body>
void for_each_in_parallel(size_t count, Body body) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t first_bad = SIZE_MAX;
  std::exception_ptr error;
  const auto work = [&] {
    for (size_t i; (i = next++) < count;) {
      try {
        body(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (i < first_bad) {
          first_bad = i;
          error = std::current_exception();
        }
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < std::min(count, kFileThreads); ++i) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace dtrain::data
