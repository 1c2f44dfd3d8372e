#include "libdtrain/core/types.h"

#include <ostream>

namespace dtrain {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  return "?";
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(dims_[i]);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) {
  return out << (device.kind == DeviceKind::cpu ? "cpu:" : "cuda:") << device.index;
}

}  // namespace dtrain
