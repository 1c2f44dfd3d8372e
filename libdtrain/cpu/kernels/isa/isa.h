// The SIMD vocabulary of the instruction set being compiled: the header of the set, and loads and stores of float, bf16
// and uint8 on top of it.
#pragma once

#if defined(DT_SCALAR)
#include "libdtrain/cpu/kernels/isa/scalar.h"
#elif defined(__AVX512F__)
#include "libdtrain/cpu/kernels/isa/avx512.h"
#else
#include "libdtrain/cpu/kernels/isa/avx2.h"
#endif
#ifdef __AVX512BF16__
#include "libdtrain/cpu/kernels/isa/bf16.h"
#endif
#ifdef __AMX_TILE__
#include "libdtrain/cpu/kernels/isa/amx.h"
#endif

namespace dtrain::cpu::DT_ISA {

[[gnu::always_inline]] inline Floats broadcast(float x) { return x - Floats{}; }
[[gnu::always_inline]] inline Ints broadcast(int32_t x) { return x + Ints{}; }
[[gnu::always_inline]] inline Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }

// Elements need not be aligned. They are floats in registers: bf16 and uint8 are exact, and are rounded where they are
// stored. A uint8 saturates; a NaN becomes 0.
template <class V = Floats>
[[gnu::always_inline]] inline V load(const float* from) {
  return load_unaligned<V>(from);
}
template <class V = Floats>
[[gnu::always_inline]] inline V load(const Bf16* from) {
  const typename Lanes<V>::Bits bits = widen(load_unaligned<typename Lanes<V>::Halves>(from));
  return __builtin_bit_cast(V, bits << 16);
}
[[gnu::always_inline]] inline Floats load(const uint8_t* from) { return to_floats(widen_bytes(from)); }

template <class V>
[[gnu::always_inline]] inline void store(float* to, V value) {
  std::memcpy(to, &value, sizeof value);
}
template <class V>
[[gnu::always_inline]] inline void store(Bf16* to, V value) {
  const typename Lanes<V>::Halves halves = round_to_bf16(value);
  std::memcpy(to, &halves, sizeof halves);
}

// Non-temporal store, for results too large to stay in a cache. `to` is aligned to the bytes of a vector of elements; a
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

template <bool kNonTemporal, class V, class T>
[[gnu::always_inline]] inline void store_or_stream(T* to, V value) {
  kNonTemporal ? stream(to, value) : store(to, value);
}

// Two adjacent vectors. Sets have overloads where one conversion narrows both.
template <bool kNonTemporal, class T>
[[gnu::always_inline]] inline void store_both(T* to, Floats first, Floats second) {
  store_or_stream<kNonTemporal>(to, first);
  store_or_stream<kNonTemporal>(to + kLanes, second);
}

// The first `count` elements of a vector, followed by zeros.
template <class T>
[[gnu::always_inline]] inline Floats load_first(const T* from, int64_t count) {
  T elements[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) elements[i] = from[i];
  return load(elements);
}
// Stores the first `count` elements.
template <class T>
[[gnu::always_inline]] inline void store_first(T* to, Floats value, int64_t count) {
  T elements[kLanes];
  store(elements, value);
  for (int64_t i = 0; i < count; ++i) to[i] = elements[i];
}

// Calls body(V(), i) for each vector V of the channels from `begin` on, [i, i + lanes), then for each single channel of
// the rest.
template <class Body>
[[gnu::always_inline]] inline void for_each_vector(int64_t begin, int64_t channels, const Body& body) {
  int64_t i = begin;
  for (; i + kLanes <= channels; i += kLanes) body(Floats(), i);
  for (; i < channels; ++i) body(float(), i);
}

}  // namespace dtrain::cpu::DT_ISA
