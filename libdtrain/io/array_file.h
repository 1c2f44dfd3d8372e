// Named arrays of numbers in a file of either format that other programs exchange weights in: safetensors and NumPy's
// archives.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libdtrain/io/npz.h"
#include "libdtrain/io/npz_output.h"
#include "libdtrain/io/safetensors.h"

namespace dtrain {

enum class ArrayFormat { safetensors, npz };

struct ArrayEntry {
  std::string name{};
  std::string dtype{};  // as the format spells it: "F32", "f4"
  Shape shape{};
};

// `name` without one, two ... of the prefixes "module.", "_orig_mod." and "model." that it begins with, as wrappers of
// PyTorch put them before names: "_orig_mod.conv1.weight" and "conv1.weight" for "module._orig_mod.conv1.weight". At
// most four, parts of `name`; none of most names.
std::vector<std::string_view> unwrapped_names(std::string_view name);

// An open file, which is an archive where it begins as one, whatever it is called. Failures throw Error(fault) as
// SafetensorsFile and NpzFile say; PyTorch's pickled files are refused with what to do.
class ArrayFile {
 public:
  explicit ArrayFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return path_; }
  ArrayFormat format() const;
  const std::vector<ArrayEntry>& entries() const { return entries_; }  // in the order of their data
  // The array of that name, or else the first one that has it without its wrappers; null where there is none.
  const ArrayEntry* find(const std::string& name) const;
  // Whether read() takes it: those of safetensors have to be F32, F16, BF16 or F64.
  bool readable(const ArrayEntry& entry) const;
  // Whether the elements are of another type than f32, so that read() rounds them.
  static bool is_cast(const ArrayEntry& entry) { return entry.dtype != "F32" && entry.dtype != "f4"; }
  // The elements of one of entries(), row-major, each rounded to the nearest float.
  std::vector<float> read(const ArrayEntry& entry) const;

 private:
  std::string path_;
  std::variant<std::monostate, SafetensorsFile, NpzFile> file_;
  std::vector<ArrayEntry> entries_;
  std::map<std::string, size_t> by_name_;
};

// Writes arrays of f32 and i64 one after the other, as `plan` lists them.
class ArrayOutput {
 public:
  // `metadata` is for safetensors; archives have none. Throws Error as safetensors_header() and NpzOutput say.
  ArrayOutput(OutputFile& file, ArrayFormat format, std::span<const TensorSpec> plan,
              const SafetensorsMetadata& metadata = {{"format", "pt"}});
  // The elements of the next array of the plan.
  void write(const void* data);
  // After the last one. Throws Error where some are missing.
  void finish();

 private:
  OutputFile& file_;
  std::vector<TensorSpec> plan_;
  std::optional<NpzOutput> archive_{};
  size_t written_ = 0;
};

}  // namespace dtrain
