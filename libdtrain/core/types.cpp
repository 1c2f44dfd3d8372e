#include "dtrain/core/types.h"

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

void Shape::refuse_dimension(int i) const {
  throw Error(concat("dimension ", i, " of ", *this, ": it has ", rank_, ", numbered from 0"));
}

void Shape::refuse_count(int64_t dim) const {
  Shape whole = *this;
  whole.dims_[static_cast<size_t>(whole.rank_++)] = dim;
  throw Error(concat("shape ", whole, ": more than ", kMaxCount, " elements"));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) {
  return out << (device.kind == DeviceKind::cpu ? "cpu:" : "cuda:") << device.index;
}

}  // namespace dtrain
