// safetensors format: a JSON header followed by tensors; strict reader.
//   u64 header size (LE) | header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...} |
//   data
// Offsets count from the end of the header; tensors are contiguous.
// (https://github.com/huggingface/safetensors, "Format")
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dtrain/core/types.h"
#include "dtrain/io/input_file.h"

namespace dtrain {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, as in the reference implementation

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // in the file's spelling: "F32", "I64", "BF16", ...
  Shape shape;
  uint64_t offset = 0, bytes = 0;  // in the file
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Open file with a validated header. Memory is proportional to the actual header, not to announced sizes. Failures
// throw Error(fault) naming file and tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return file_.path(); }
  // In order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const SafetensorsEntry* find(const std::string& name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }
  // Reads the `entry.bytes` bytes of a tensor, row-major.
  void read(const SafetensorsEntry& entry, void* to) const { file_.read(entry.offset, to, entry.bytes); }
  // Elements of an F32, F16, BF16 or F64 tensor, rounded to nearest f32; overflow gives infinity. Throws Error for
  // another type.
  std::vector<float> read_floats(const SafetensorsEntry& entry) const;
  // Elements of a tensor in its own type.
  std::string read_bytes(const SafetensorsEntry& entry) const;

 private:
  InputFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, size_t> by_name_;
  SafetensorsMetadata metadata_;
};

// Open files that share the tensors of a model, as transformers and diffusers write them: an index in JSON,
// {"weight_map": {"conv1.weight": "model-00001-of-00002.safetensors", ...}}, beside the files. Failures throw
// Error(fault).
class SafetensorsShards {
 public:
  explicit SafetensorsShards(const std::string& index, Fault fault = Fault::data);

  // Of all files, in their order.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  // As SafetensorsFile::read_floats(), by name.
  std::vector<float> read_floats(const std::string& name) const;
  // As SafetensorsFile::read_bytes(), by name.
  std::string read_bytes(const std::string& name) const;

 private:
  const SafetensorsFile& file_of(const std::string& name) const;

  std::deque<SafetensorsFile> files_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, size_t> file_of_;
};

// Whether read_floats() supports the type.
bool is_floating(const std::string& dtype);
// safetensors name of a DType: "F32".
std::string safetensors_dtype(DType dtype);

struct TensorSpec {
  std::string name{};
  DType dtype = DType::f32;
  Shape shape{};
};

// Header of a file with `tensors`, whose data follows contiguously in the same order. Names must be unique and UTF-8.
// Put wide element types first, so that all data is aligned to its element size.
std::string safetensors_header(std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata = {});
// The same for tensors of any type of the format; `offset` and `bytes` are not read.
std::string safetensors_header(std::span<const SafetensorsEntry> tensors, const SafetensorsMetadata& metadata = {});

}  // namespace dtrain
