// Named arrays of numbers in a file of either format that other programs exchange weights in: safetensors and NumPy's
// archives.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
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

// An open file, which is an archive where it begins as one, whatever it is called. Failures throw Error(fault) as
// SafetensorsFile and NpzFile say; PyTorch's pickled files are refused with what to do.
class ArrayFile {
 public:
  explicit ArrayFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return path_; }
  ArrayFormat format() const;
  const std::vector<ArrayEntry>& entries() const { return entries_; }  // in the order of their data
  const ArrayEntry* find(const std::string& name) const;
  // Whether read() takes it: those of safetensors have to be F32.
  bool readable(const ArrayEntry& entry) const;
  // The elements of one of entries(), row-major.
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
  // Throws Error as safetensors_header() and NpzOutput say.
  ArrayOutput(OutputFile& file, ArrayFormat format, std::span<const TensorSpec> plan);
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
