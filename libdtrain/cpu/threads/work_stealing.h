// Work sharing between the OpenMP threads of CPU arms: work stealing by chunks, static parts for sums, and element-wise
// loops.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/threads/first_exception.h"

namespace dtrain::cpu {

// Below this many elements per thread, waking a thread costs more than it saves.
inline constexpr int64_t kElementsPerThread = 16384;

// [0, count) in chunks for work stealing. Each thread owns one long chunk and some short ones after it; a thread that
// has finished its own chunks steals what is left of others'. So a core that is slower than the rest, because other
// processes use it, delays them by one short chunk at most. The chunks depend on the arguments alone: sums by chunk,
// merged in their order, are bit-equal at an equal number of threads.
class ChunkedRange {
 public:
  // `min_chunk`: the least size of a short chunk, so that it costs little more than as a part of a long one.
  ChunkedRange(int64_t threads, int64_t count, int64_t min_chunk)
      : threads_(threads), count_(count), min_chunk_(min_chunk) {
    if (threads > 1) per_thread_ += std::min(kShort, count / threads / 2 / min_chunk);
  }
  static int64_t max_count(int64_t threads) { return threads * (1 + kShort); }

  int64_t threads() const { return threads_; }
  int64_t per_thread() const { return per_thread_; }
  int64_t count() const { return threads_ * per_thread_; }
  int64_t begin(int64_t chunk) const {
    const int64_t owner = chunk / per_thread_, number = chunk % per_thread_, first = begin_of_owner(owner);
    if (number == 0) return first;
    const int64_t end = begin_of_owner(owner + 1), size = std::max(min_chunk_, (end - first) / (4 * kShort));
    return end - (per_thread_ - number) * size;
  }
  int64_t end(int64_t chunk) const { return begin(chunk + 1); }

 private:
  static constexpr int64_t kShort = 4;  // short chunks of a thread, at most: a quarter of its range

  int64_t begin_of_owner(int64_t owner) const { return count_ * owner / threads_; }

  int64_t threads_, count_, min_chunk_, per_thread_ = 1;
};

// Calls body(thread, chunk, begin, end) for all chunks. The first exception is thrown after the others have ended.
template <class Body>
void parallel_chunks(const ChunkedRange& chunks, const Body& body) {
  const int64_t threads = chunks.threads();
  std::vector<std::atomic<int64_t>> taken(static_cast<size_t>(threads));  // of each owner's chunks
  FirstException failure;
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const int64_t thread = omp_get_thread_num();
    for (int64_t i = 0; i < threads; ++i) {
      const int64_t owner = (thread + i) % threads, first = owner * chunks.per_thread();
      for (int64_t number; (number = taken[static_cast<size_t>(owner)]++) < chunks.per_thread();)
        failure.guard([&] { body(thread, first + number, chunks.begin(first + number), chunks.end(first + number)); });
    }
  }
  failure.rethrow();
}

// Calls body(begin, end) for chunks of [0, count), or body(number, begin, end) for one chunk of each thread, with the
// number of the chunk. `weight`: the work of one element, as a multiple of a load, an addition and a store. The chunks
// depend on the number of threads: not for sums over elements.
template <class Body>
void parallel_ranges(int64_t count, Body&& body, int64_t weight = 1) {
  constexpr bool numbered = std::is_invocable_v<Body&, int64_t, int64_t, int64_t>;
  const auto run = [&](int64_t number, int64_t begin, int64_t end) {
    if constexpr (numbered)
      body(number, begin, end);
    else
      body(begin, end);
  };
  const int64_t threads =
      std::clamp<int64_t>(count * weight / kElementsPerThread, 1, std::min<int64_t>(omp_get_max_threads(), count + 1));
  if (threads == 1) return run(0, 0, count);
  const int64_t min_chunk = numbered ? count : std::max<int64_t>(kElementsPerThread / weight, 1);
  parallel_chunks({threads, count, min_chunk},
                  [&](int64_t, int64_t chunk, int64_t begin, int64_t end) { run(chunk, begin, end); });
}

// Sets each element i of a tensor of T, float or Bf16, to f(i), or adds f(i) to it. `weight` as above.
template <class T = float, class F>
void write(const Tensor& out, bool add, F&& f, int64_t weight = 1) {
  T* const y = out.data<T>();
  parallel_ranges(
      out.count(),
      [&](int64_t begin, int64_t end) {
        if (add)
          for (int64_t i = begin; i < end; ++i) y[i] = to_element<T>(y[i] + f(i));
        else
          for (int64_t i = begin; i < end; ++i) y[i] = to_element<T>(f(i));
      },
      weight);
}

// to[i] = from[i] in another type, float or Bf16, rounded to nearest.
template <class From, class To>
void convert_elements(const From* from, int64_t count, To* to) {
  parallel_ranges(count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = to_element<To>(from[i]);
  });
}

// By a constant: compilers make it memset.
template <class T>
void zero_elements(T* to, int64_t count) {
  parallel_ranges(count, [=](int64_t begin, int64_t end) { std::fill(to + begin, to + end, T{}); });
}

// For sums over elements: calls body(part, begin, end) for exactly context.threads() parts of [0, count), however many
// threads run, so that partial sums merged in the order of the parts are bit-equal at an equal thread count.
template <class Body>
void parallel_parts(const Context& context, int64_t count, const Body& body) {
  const int parts = context.threads();
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) body(part, count * part / parts, count * (part + 1) / parts);
}

// The sum of term(i) over [0, count) in double, in an order that depends on `count` alone: in eight lanes, which hides
// the latency of the additions.
template <class Term>
double sum_in_lanes(int64_t count, Term&& term) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  for (; i < count; ++i) lanes[0] += term(i);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace dtrain::cpu
