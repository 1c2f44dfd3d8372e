// Value types: DType, Shape, Device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>

#include "dtrain/core/error.h"
#include "dtrain/core/float16.h"

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

// DType that stores the C++ type T; f16 has no C++ type.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<Bf16>() {
  return DType::bf16;
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

// At most six extents, outermost first. Images are [n, h, w, c], filters [k, r, s, c / groups]. Throws Error for a
// negative extent, a count above kMaxCount, and access to a dimension out of range.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  static constexpr int64_t kMaxCount = INT64_MAX / 8;  // elements: their size in bytes fits in int64_t for any dtype

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    DT_CHECK(dims.size() <= kMaxRank, "shape of rank ", dims.size(), ": at most ", kMaxRank, " dimensions");
    for (int64_t dim : dims) append(dim);
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const {
    if (i < 0 || i >= rank_) [[unlikely]]
      refuse_dimension(i);
    return dims_[static_cast<size_t>(i)];
  }
  void append(int64_t dim) {
    DT_CHECK(rank_ < kMaxRank && dim >= 0, "cannot append extent ", dim, " to a shape of rank ", rank_);
    int64_t count = 0;
    if (__builtin_mul_overflow(count_, dim, &count) || count > kMaxCount) [[unlikely]]
      refuse_count(dim);
    dims_[static_cast<size_t>(rank_++)] = dim;
    count_ = count;
  }
  // Number of elements; 1 for rank 0.
  int64_t count() const { return count_; }
  bool operator==(const Shape&) const = default;
  std::string to_string() const;  // "[16, 56, 56, 64]"

 private:
  [[noreturn]] void refuse_dimension(int i) const;
  [[noreturn]] void refuse_count(int64_t dim) const;

  std::array<int64_t, kMaxRank> dims_{};
  int64_t count_ = 1;
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
