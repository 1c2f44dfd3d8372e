// The safetensors format: named tensors after a JSON header, read strictly.
//   u64 header size (LE) | header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...} |
//   data
// Offsets count from the end of the header; the tensors fill the data without gap or overlap.
// (https://github.com/huggingface/safetensors, "Format")
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/core/types.h"
#include "libdtrain/io/input_file.h"

namespace dtrain {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, as in the reference implementation

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as the file spells it: "F32", "I64", "BF16", ...
  Shape shape;
  uint64_t offset = 0, bytes = 0;  // in the file
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// An open file whose header has been checked against its size and the rules of the format. Takes memory in proportion
// to the header that is there, never on a number's word. Failures throw Error(fault) naming the file and the tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return file_.path(); }
  // In the order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const SafetensorsEntry* find(const std::string& name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }
  // The `entry.bytes` bytes of a tensor, row-major.
  void read(const SafetensorsEntry& entry, void* to) const { file_.read(entry.offset, to, entry.bytes); }
  // The elements of an F32, F16, BF16 or F64 tensor, each rounded to the nearest float; what a float cannot hold
  // becomes an infinity. Throws Error for a tensor of another type.
  std::vector<float> read_floats(const SafetensorsEntry& entry) const;

 private:
  InputFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, size_t> by_name_;
  SafetensorsMetadata metadata_;
};

// Whether read_floats() takes tensors of this type.
bool is_floating(const std::string& dtype);
// The format's name of an element type: "F32".
std::string safetensors_dtype(DType dtype);

struct TensorSpec {
  std::string name{};
  DType dtype = DType::f32;
  Shape shape{};
};

// What a file of `tensors` begins with; their data follows in the same order, without gaps. Names must differ and be
// UTF-8. Tensors of wide elements belong first, so that all data is aligned to its element size.
std::string safetensors_header(std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata = {});

}  // namespace dtrain
