// Even shares of a range of elements for the OpenMP threads of the CPU arms.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace dtrain::cpu {

// Below this many elements per thread, waking a thread costs more than it saves.
inline constexpr int64_t kElementsPerThread = 16384;

// body(begin, end) over [0, count), each thread one contiguous share. `weight`: the work of one element, as a multiple
// of a plain load, add and store. The shares depend on the thread count: not for sums over elements.
template <class Body>
void parallel_ranges(int64_t count, Body&& body, int64_t weight = 1) {
  const int64_t threads =
      std::clamp<int64_t>(count * weight / kElementsPerThread, 1, std::min<int64_t>(omp_get_max_threads(), count + 1));
  if (threads == 1) return body(int64_t{0}, count);
#pragma omp parallel for num_threads(static_cast <int>(threads)) schedule(static)
  for (int64_t t = 0; t < threads; ++t) body(count * t / threads, count * (t + 1) / threads);
}

}  // namespace dtrain::cpu
