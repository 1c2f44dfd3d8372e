// Eight floats at a time, in GCC's vector extension: one source for every instruction set.
#pragma once

#include <cstring>

namespace dtrain::cpu {

using Float8 = float __attribute__((vector_size(32)));

inline Float8 load8(const float* from) {
  Float8 value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store8(float* to, Float8 value) { std::memcpy(to, &value, sizeof value); }

inline Float8 broadcast8(float value) { return value - Float8{}; }

}  // namespace dtrain::cpu
