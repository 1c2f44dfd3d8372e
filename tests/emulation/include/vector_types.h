// Emulated vector types, with CUDA's layout and alignment.
#pragma once

#define DT_EMULATED_VECTORS(name, element, align2, align4)                                              \
  struct name##1 {                                                                                      \
    element x;                                                                                          \
  };                                                                                                    \
  struct alignas(align2) name##2 {                                                                      \
    element x, y;                                                                                       \
  };                                                                                                    \
  struct name##3 {                                                                                      \
    element x, y, z;                                                                                    \
  };                                                                                                    \
  struct alignas(align4) name##4 {                                                                      \
    element x, y, z, w;                                                                                 \
  };                                                                                                    \
  constexpr name##1 make_##name##1(element x) { return {x}; }                                           \
  constexpr name##2 make_##name##2(element x, element y) { return {x, y}; }                             \
  constexpr name##3 make_##name##3(element x, element y, element z) { return {x, y, z}; }               \
  constexpr name##4 make_##name##4(element x, element y, element z, element w) { return {x, y, z, w}; } \
  static_assert(sizeof(name##4) == 4 * sizeof(element))

DT_EMULATED_VECTORS(char, signed char, 2, 4);
DT_EMULATED_VECTORS(uchar, unsigned char, 2, 4);
DT_EMULATED_VECTORS(short, short, 4, 8);
DT_EMULATED_VECTORS(ushort, unsigned short, 4, 8);
DT_EMULATED_VECTORS(int, int, 8, 16);
DT_EMULATED_VECTORS(uint, unsigned int, 8, 16);
DT_EMULATED_VECTORS(longlong, long long, 16, 16);
DT_EMULATED_VECTORS(ulonglong, unsigned long long, 16, 16);
DT_EMULATED_VECTORS(float, float, 8, 16);
DT_EMULATED_VECTORS(double, double, 16, 16);
#undef DT_EMULATED_VECTORS

// Extents of a grid or block; 1 by default.
struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)  // NOLINT(google-explicit-constructor)
      : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}          // NOLINT(google-explicit-constructor)
  constexpr operator uint3() const { return uint3{x, y, z}; }  // NOLINT(google-explicit-constructor)
};
