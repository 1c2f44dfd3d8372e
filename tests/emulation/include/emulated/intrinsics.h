// Memory intrinsics: cached and streaming accesses, atomics, fences. Threads are interleaved on one processor, so
// atomics are plain reads and writes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace emulation {
// Misaligned vector accesses fault on a GPU, but not necessarily on a CPU.
template <class T>
const T* aligned(const T* p) {
  auto address = reinterpret_cast<std::uintptr_t>(p);
  __asm__("" : "+r"(address));  // prevents the assumption that a T* is aligned
  if (address % alignof(T) != 0) {
    std::fprintf(stderr, "emulation: access to the misaligned address %p\n", static_cast<const void*>(p));
    std::abort();
  }
  return p;
}
template <class T>
T* aligned(T* p) {
  aligned(static_cast<const T*>(p));
  return p;
}
template <class T, class F>
T exchange(T* p, F&& changed) {
  const T old = *aligned(p);
  *p = static_cast<T>(changed(old));
  return old;
}
template <class T>
using Same = std::type_identity_t<T>;
}  // namespace emulation

template <class T>
T __ldg(const T* p) {
  return *emulation::aligned(p);
}
template <class T>
T __ldcs(const T* p) {
  return *emulation::aligned(p);
}
template <class T>
T __ldcg(const T* p) {
  return *emulation::aligned(p);
}
template <class T>
T __ldca(const T* p) {
  return *emulation::aligned(p);
}
template <class T>
void __stcs(T* p, emulation::Same<T> value) {
  *emulation::aligned(p) = value;
}
template <class T>
void __stcg(T* p, emulation::Same<T> value) {
  *emulation::aligned(p) = value;
}
template <class T>
void __stwt(T* p, emulation::Same<T> value) {
  *emulation::aligned(p) = value;
}

template <class T>
T atomicAdd(T* p, emulation::Same<T> value) {
  return emulation::exchange(p, [&](T old) { return old + value; });
}
template <class T>
T atomicMax(T* p, emulation::Same<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has this for integers only");
  return emulation::exchange(p, [&](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* p, emulation::Same<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has this for integers only");
  return emulation::exchange(p, [&](T old) { return value < old ? value : old; });
}
template <class T>
T atomicOr(T* p, emulation::Same<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has this for integers only");
  return emulation::exchange(p, [&](T old) { return old | value; });
}
template <class T>
T atomicAnd(T* p, emulation::Same<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has this for integers only");
  return emulation::exchange(p, [&](T old) { return old & value; });
}
template <class T>
T atomicExch(T* p, emulation::Same<T> value) {
  return emulation::exchange(p, [&](T) { return value; });
}
template <class T>
T atomicCAS(T* p, emulation::Same<T> expected, emulation::Same<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has this for integers only");
  return emulation::exchange(p, [&](T old) { return old == expected ? value : old; });
}
inline unsigned atomicInc(unsigned* p, unsigned limit) {
  return emulation::exchange(p, [&](unsigned old) { return old >= limit ? 0 : old + 1; });
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
[[noreturn]] inline void __trap() { std::abort(); }
