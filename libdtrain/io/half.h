// IEEE 754 half precision in files.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace dtrain {

struct Half {
  uint16_t bits;

  operator float() const {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
};

// Element of type T, not aligned, as f32.
template <class T>
float element_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<float>(value);
}

}  // namespace dtrain
