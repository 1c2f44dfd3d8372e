// Named arrays in the formats that programs exchange weights in: safetensors, also in several files with an index
// (.index.json), NumPy archives (.npz), and files of PyTorch and detectron2 (.pth, .pt, .ckpt, .pkl).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dtrain/io/npz.h"
#include "dtrain/io/npz_output.h"
#include "dtrain/io/safetensors.h"
#include "dtrain/io/torch_file.h"

namespace dtrain {

enum class ArrayFormat { safetensors, npz, torch };

struct ArrayEntry {
  std::string name{};
  std::string dtype{};  // in the format's spelling: "F32", "f4"
  Shape shape{};
};

// `name` without one, two ... of the leading prefixes "module.", "_orig_mod." and "model." of PyTorch wrappers:
// "_orig_mod.conv1.weight" and "conv1.weight" for "module._orig_mod.conv1.weight". At most four, substrings of `name`;
// empty for most names.
std::vector<std::string_view> unwrapped_names(std::string_view name);

// Open file; its content decides the format, not its name. Failures throw Error(fault) as in SafetensorsFile, NpzFile
// and TorchFile.
class ArrayFile {
 public:
  explicit ArrayFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return path_; }
  ArrayFormat format() const;
  const std::vector<ArrayEntry>& entries() const { return entries_; }  // in order of their data
  // Array of that name, or else the first with that name after removing wrapper prefixes; null if there is none.
  const ArrayEntry* find(const std::string& name) const;
  // What of the file is not read: keys beside PyTorch's state_dict. Empty for other formats.
  const std::string& left_out() const { return left_out_; }
  // Whether read() supports the array: in safetensors and PyTorch's files it must be F32, F16, BF16 or F64.
  bool readable(const ArrayEntry& entry) const;
  // Whether read() converts, because the elements are not f32.
  static bool is_cast(const ArrayEntry& entry) { return entry.dtype != "F32" && entry.dtype != "f4"; }
  // Elements of one of entries(), row-major, rounded to nearest f32.
  std::vector<float> read(const ArrayEntry& entry) const;
  // The type of one of entries() in safetensors' spelling; empty for types that safetensors do not have.
  std::string safetensors_type(const ArrayEntry& entry) const;
  // Elements of one of entries() with a safetensors_type(), row-major, in that type.
  std::string read_bytes(const ArrayEntry& entry) const;
  // Of a safetensors file; empty for other formats.
  SafetensorsMetadata metadata() const;

 private:
  std::string path_;
  std::variant<std::monostate, SafetensorsFile, SafetensorsShards, NpzFile, TorchFile> file_;
  std::vector<ArrayEntry> entries_;
  std::map<std::string, size_t> by_name_;
  std::string left_out_;
};

// Writes arrays in the order of `plan`, as safetensors or .npz.
class ArrayOutput {
 public:
  // `metadata`: for safetensors only. Throws Error as safetensors_header() and NpzOutput do.
  ArrayOutput(OutputFile& file, ArrayFormat format, std::span<const TensorSpec> plan,
              const SafetensorsMetadata& metadata = {{"format", "pt"}});
  // The same for types in safetensors' spelling.
  ArrayOutput(OutputFile& file, ArrayFormat format, std::span<const SafetensorsEntry> plan,
              const SafetensorsMetadata& metadata = {{"format", "pt"}});
  // Writes the next array of the plan.
  void write(const void* data);
  // Call after the last array. Throws Error if arrays are missing.
  void finish();

 private:
  OutputFile& file_;
  std::vector<SafetensorsEntry> plan_;
  std::optional<NpzOutput> archive_{};
  size_t written_ = 0;
};

}  // namespace dtrain
