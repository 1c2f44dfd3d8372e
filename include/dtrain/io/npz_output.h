// NpzOutput: NumPy archives of uncompressed NAME.npy members, in order, without timestamps: deterministic output.
// Counterpart of dtrain/io/npz.h.
#pragma once

#include <set>
#include <string>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/safetensors.h"

namespace dtrain {

class NpzOutput {
 public:
  // Writes to `file`, which must be empty and not be written otherwise before finish().
  explicit NpzOutput(OutputFile& file) : file_(file) {}

  // Adds an array, row-major, with the elements of its shape at `data`. Throws Error for a type that NumPy does not
  // have (BF16, F8), an empty, duplicate or overlong name (1000 bytes), and an archive beyond 4 GiB or 65,535 members.
  void add(const TensorSpec& array, const void* data);
  // The same for a type in safetensors' spelling; `offset` and `bytes` are not read.
  void add(const SafetensorsEntry& array, const void* data);
  // Writes the central directory.
  void finish();

 private:
  OutputFile& file_;
  std::string directory_{};
  std::set<std::string> names_{};
};

}  // namespace dtrain
