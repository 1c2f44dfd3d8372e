// How the OpenMP threads of the CPU arms share work, and the scratch memory that they use.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/elements.h"

namespace dtrain::cpu {

// Below this many elements per thread, waking a thread costs more than it saves.
inline constexpr int64_t kElementsPerThread = 16384;

// [0, count) in shares that threads take as they become free. Each thread begins with a part of its own, a long share
// and some short ones after it; whoever is done with its own takes what is left of others'. So a core that does less
// than the rest, because others use it as well, holds them up by a short share at most. The shares depend on the
// arguments alone: what is summed by shares, and merged in their order, is bit-equal at an equal number of threads.
class WorkShares {
 public:
  // `least`: what a short share has at least, so that it costs little more than it would as a part of a long one.
  WorkShares(int64_t threads, int64_t count, int64_t least) : threads_(threads), count_(count), least_(least) {
    if (threads > 1) of_part_ += std::min(kShort, count / threads / 2 / least);
  }
  static int64_t most(int64_t threads) { return threads * (1 + kShort); }

  int64_t threads() const { return threads_; }
  int64_t of_part() const { return of_part_; }
  int64_t count() const { return threads_ * of_part_; }
  int64_t begin(int64_t share) const {
    const int64_t part = share / of_part_, number = share % of_part_, first = begin_of_part(part);
    if (number == 0) return first;
    const int64_t end = begin_of_part(part + 1), size = std::max(least_, (end - first) / (4 * kShort));
    return end - (of_part_ - number) * size;
  }
  int64_t end(int64_t share) const { return begin(share + 1); }

 private:
  static constexpr int64_t kShort = 4;  // shares of a part, at most: a quarter of it

  int64_t begin_of_part(int64_t part) const { return count_ * part / threads_; }

  int64_t threads_, count_, least_, of_part_ = 1;
};

// body(thread, share, begin, end) for all shares.
template <class Body>
void parallel_shares(const WorkShares& shares, const Body& body) {
  const int64_t threads = shares.threads();
  std::vector<std::atomic<int64_t>> taken(static_cast<size_t>(threads));  // of each part
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const int64_t thread = omp_get_thread_num();
    for (int64_t i = 0; i < threads; ++i) {
      const int64_t part = (thread + i) % threads, first = part * shares.of_part();
      for (int64_t number; (number = taken[static_cast<size_t>(part)]++) < shares.of_part();)
        body(thread, first + number, shares.begin(first + number), shares.end(first + number));
    }
  }
}

// body(begin, end) over ranges of [0, count), or body(share, begin, end) with one range for each thread and the number
// of the range, which is less than the thread count. `weight`: the work of one element, as a multiple of a plain load,
// add and store. The ranges depend on the thread count: not for sums over elements.
template <class Body>
void parallel_ranges(int64_t count, Body&& body, int64_t weight = 1) {
  constexpr bool numbered = std::is_invocable_v<Body&, int64_t, int64_t, int64_t>;
  const auto run = [&](int64_t share, int64_t begin, int64_t end) {
    if constexpr (numbered)
      body(share, begin, end);
    else
      body(begin, end);
  };
  const int64_t threads =
      std::clamp<int64_t>(count * weight / kElementsPerThread, 1, std::min<int64_t>(omp_get_max_threads(), count + 1));
  if (threads == 1) return run(0, 0, count);
  const int64_t least = numbered ? count : std::max<int64_t>(kElementsPerThread / weight, 1);
  parallel_shares({threads, count, least},
                  [&](int64_t, int64_t share, int64_t begin, int64_t end) { run(share, begin, end); });
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

// For sums over elements: body(part, begin, end) for exactly context.threads() parts that tile [0, count), however many
// threads run, so that partial sums merged in the order of the parts are bit-equal at an equal thread count.
template <class Body>
void parallel_parts(const Context& context, int64_t count, const Body& body) {
  const int parts = context.threads();
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) body(part, count * part / parts, count * (part + 1) / parts);
}

// The sum of term(i) over [0, count), in double and in an order that depends on `count` alone: in eight lanes, so that
// an addition need not wait for the one before it.
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

// Uninitialised memory of the context's pool, for the length of a call.
template <class T>
class Scratch {
 public:
  Scratch(const Context& context, int64_t count)
      : bytes_(context.empty({count * static_cast<int64_t>(sizeof(T))}, DType::u8)) {}
  T* data() const { return static_cast<T*>(bytes_.raw()); }

 private:
  Tensor bytes_;
};

}  // namespace dtrain::cpu
