// Eight floats at a time, in GCC's vector extension: one source for every instruction set.
#pragma once

#include <cstring>

namespace dtrain::cpu {

using Float8 = float __attribute__((vector_size(32)));

// V is Float8, or float for code that is written once for both: vectors, and what is left beside them.
template <class V>
inline V load(const float* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
inline void store(float* to, V value) {
  std::memcpy(to, &value, sizeof value);
}

inline Float8 load8(const float* from) { return load<Float8>(from); }
inline void store8(float* to, Float8 value) { store(to, value); }

inline Float8 broadcast8(float value) { return value - Float8{}; }

}  // namespace dtrain::cpu
