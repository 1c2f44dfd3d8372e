#include "libdtrain/io/element_types.h"

#include <cstdint>

#include "dtrain/core/float16.h"
#include "libdtrain/io/half.h"

namespace dtrain {
namespace {

struct FileType {
  std::string_view dtype, numpy;
  size_t bytes;
  ElementReader read;
};

constexpr FileType kFileTypes[] = {
    {"BOOL", "b1", 1, element_at<uint8_t>},
    {"U8", "u1", 1, element_at<uint8_t>},
    {"I8", "i1", 1, element_at<int8_t>},
    {"F8_E5M2", "", 1, nullptr},
    {"F8_E4M3", "", 1, nullptr},
    {"I16", "i2", 2, element_at<int16_t>},
    {"U16", "u2", 2, element_at<uint16_t>},
    {"F16", "f2", 2, element_at<Half>},
    {"BF16", "", 2, element_at<Bf16>},
    {"I32", "i4", 4, element_at<int32_t>},
    {"U32", "u4", 4, element_at<uint32_t>},
    {"F32", "f4", 4, element_at<float>},
    {"I64", "i8", 8, element_at<int64_t>},
    {"U64", "u8", 8, element_at<uint64_t>},
    {"F64", "f8", 8, element_at<double>},
};

const FileType* file_type(std::string_view dtype) {
  for (const FileType& type : kFileTypes)
    if (type.dtype == dtype) return &type;
  return nullptr;
}

}  // namespace

size_t bytes_of_dtype(std::string_view dtype) {
  const FileType* const type = file_type(dtype);
  return type ? type->bytes : 0;
}

std::string_view numpy_type(std::string_view dtype) {
  const FileType* const type = file_type(dtype);
  return type ? type->numpy : "";
}

std::string_view dtype_of_numpy(std::string_view type) {
  for (const FileType& known : kFileTypes)
    if (!type.empty() && known.numpy == type) return known.dtype;
  return "";
}

ElementReader element_reader(std::string_view dtype) {
  const FileType* const type = file_type(dtype);
  return type ? type->read : nullptr;
}

std::vector<float> floats_of(std::string_view dtype, const std::string& elements) {
  const FileType& type = *file_type(dtype);
  std::vector<float> values(elements.size() / type.bytes);
  for (size_t i = 0; i < values.size(); ++i) values[i] = type.read(elements.data() + i * type.bytes);
  return values;
}

}  // namespace dtrain
