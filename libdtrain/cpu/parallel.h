// How the OpenMP threads of the CPU arms share work, and the scratch memory that they use.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "libdtrain/core/context.h"

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

// out[i] = f(i), or out[i] += f(i), of f32. `weight` as above.
template <class F>
void write(const Tensor& out, bool add, F&& f, int64_t weight = 1) {
  float* const y = out.data<float>();
  parallel_ranges(
      out.count(),
      [&](int64_t begin, int64_t end) {
        if (add)
          for (int64_t i = begin; i < end; ++i) y[i] += f(i);
        else
          for (int64_t i = begin; i < end; ++i) y[i] = f(i);
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
