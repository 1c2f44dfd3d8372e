// The SIMD vocabulary of the instruction set being compiled: its own header, and loads and stores of float and bf16 on
// top of it.
#pragma once

#if defined(DT_SCALAR)
#define DT_BF16  // there are dot products of bf16 pairs
#include "libdtrain/cpu/kernels/isa/scalar.h"
#elif defined(__AVX512F__)
#include "libdtrain/cpu/kernels/isa/avx512.h"
#else
#include "libdtrain/cpu/kernels/isa/avx2.h"
#endif
#ifdef __AVX512VNNI__
#include "libdtrain/cpu/kernels/isa/vnni.h"
#endif
#ifdef __AVX512BF16__
#define DT_BF16
#include "libdtrain/cpu/kernels/isa/bf16.h"
#endif
#ifdef __AMX_TILE__
#include "libdtrain/cpu/kernels/isa/amx.h"
#endif

namespace dtrain::cpu::DT_ISA {

[[gnu::always_inline]] inline Floats broadcast(float x) { return x - Floats{}; }

// Elements need not be aligned. Bf16 elements are exact floats in registers and are rounded by round_to_bf16 where they
// are stored.
template <class V = Floats>
[[gnu::always_inline]] inline V load(const float* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class V = Floats>
[[gnu::always_inline]] inline V load(const Bf16* from) {
  typename Lanes<V>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  typename Lanes<V>::Bits bits;
  if constexpr (sizeof(V) == sizeof(float))
    bits = halves;
  else
    bits = widen(halves);
  bits <<= 16;
  V value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class V>
[[gnu::always_inline]] inline void store(float* to, V value) {
  std::memcpy(to, &value, sizeof value);
}
template <class V>
[[gnu::always_inline]] inline void store(Bf16* to, V value) {
  const typename Lanes<V>::Halves halves = round_to_bf16(value);
  std::memcpy(to, &halves, sizeof halves);
}

// Non-temporal store, for what is too large to stay in a cache. `to` is aligned to the bytes of a vector of elements; a
// single element is stored as by store(). Call fence() before other threads read.
template <class V, class T>
[[gnu::always_inline]] inline void stream(T* to, V value) {
  if constexpr (sizeof(V) == sizeof(float)) {
    store(to, value);
  } else {
    alignas(sizeof(V)) T elements[sizeof(V) / sizeof(float)];
    store(elements, value);
    stream_bytes<sizeof elements>(to, elements);
  }
}

// Two adjacent vectors; bf16.h has an overload.
template <bool kNonTemporal, class T>
[[gnu::always_inline]] inline void store_both(T* to, Floats first, Floats second) {
  kNonTemporal ? stream(to, first) : store(to, first);
  kNonTemporal ? stream(to + kLanes, second) : store(to + kLanes, second);
}

}  // namespace dtrain::cpu::DT_ISA
