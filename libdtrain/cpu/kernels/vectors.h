// Vectors of floats as wide as the registers of the instruction set that a kernel is compiled for, in GCC's vector
// extension. The namespace DT_ISA, which the build names after that set, keeps what is compiled for one set apart from
// what is compiled for another: the linker keeps one of several inline functions of one name, whichever it likes.
#pragma once

#include <cstdint>
#include <cstring>

namespace dtrain::cpu::DT_ISA {

#ifdef __AVX512F__
inline constexpr int kLanes = 16;
#else
inline constexpr int kLanes = 8;
#endif

template <int lanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(lanes * sizeof(float))));  // `using` drops the attribute of such a size
};
template <>
struct VectorOf<1> {
  using Type = float;
};
using Floats = VectorOf<kLanes>::Type;

// Floats need not be aligned.
template <class V = Floats>
[[gnu::always_inline]] inline V load(const float* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class V>
[[gnu::always_inline]] inline void store(float* to, V value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace dtrain::cpu::DT_ISA
