// How the OpenMP threads of the CPU arms share work, and the scratch memory that they use.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/elements.h"

namespace dtrain::cpu {

// Below this many elements per thread, waking a thread costs more than it saves.
inline constexpr int64_t kElementsPerThread = 16384;

// body(begin, end) over [0, count), each thread one contiguous share; or body(share, begin, end) with the number of the
// share, which is less than the thread count. `weight`: the work of one element, as a multiple of a plain load, add and
// store. The shares depend on the thread count: not for sums over elements.
template <class Body>
void parallel_ranges(int64_t count, Body&& body, int64_t weight = 1) {
  const auto run = [&](int64_t share, int64_t begin, int64_t end) {
    if constexpr (std::is_invocable_v<Body&, int64_t, int64_t, int64_t>)
      body(share, begin, end);
    else
      body(begin, end);
  };
  const int64_t threads =
      std::clamp<int64_t>(count * weight / kElementsPerThread, 1, std::min<int64_t>(omp_get_max_threads(), count + 1));
  if (threads == 1) return run(0, 0, count);
#pragma omp parallel for num_threads(static_cast <int>(threads)) schedule(static)
  for (int64_t t = 0; t < threads; ++t) run(t, count * t / threads, count * (t + 1) / threads);
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
