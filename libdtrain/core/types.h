// Value types: element type, shape, device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>

#include "libdtrain/core/error.h"

namespace dtrain {

enum class DType : uint8_t { f32, bf16, f16, i64, i32, u8 };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

// "f32", "bf16", ...
const char* name_of(DType dtype);

// The DType that stores the C++ type T; only f32, i64, i32 and u8 have one.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}

// Up to six extents, outermost first. Images are [n, h, w, c], filters [k, r, s, c / groups].
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    DT_CHECK(dims.size() <= kMaxRank, "shape of rank ", dims.size(), ": at most ", kMaxRank, " dimensions");
    for (int64_t dim : dims) {
      DT_CHECK(dim >= 0, "shape with a negative extent: ", dim);
      dims_[rank_++] = dim;
    }
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  void append(int64_t dim) {
    DT_CHECK(rank_ < kMaxRank && dim >= 0, "cannot append extent ", dim, " to a shape of rank ", rank_);
    dims_[rank_++] = dim;
  }
  // Number of elements; 1 for rank 0.
  int64_t count() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[i];
    return product;
  }
  bool operator==(const Shape&) const = default;
  std::string to_string() const;  // "[16, 56, 56, 64]"

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, DType dtype);

enum class DeviceKind : uint8_t { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace dtrain
