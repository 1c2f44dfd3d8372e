// NumPy's archives of arrays, written: stored members NAME.npy in the order in which they are added, without times, so
// that equal arrays make equal files. libdtrain/io/npz.h reads them.
#pragma once

#include <set>
#include <string>

#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/safetensors.h"

namespace dtrain {

class NpzOutput {
 public:
  // Writes to `file`, which is empty, and which nobody else writes to before finish().
  explicit NpzOutput(OutputFile& file) : file_(file) {}

  // Adds an array of f32 or i64, row-major: `data` has as many elements as its shape. Throws Error for another type, a
  // name that is empty, longer than 1000 bytes or not new, and where the archive would pass 4 GiB or 65,535 members.
  void add(const TensorSpec& array, const void* data);
  // Writes the directory, after the last array.
  void finish();

 private:
  OutputFile& file_;
  std::string directory_{};
  std::set<std::string> names_{};
};

}  // namespace dtrain
