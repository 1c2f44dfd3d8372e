// Tensors in files of PyTorch (.pth, .pt, .th, .ckpt: ZIP archives, and the form before PyTorch 1.6) and in pickles of
// NumPy arrays (detectron2's .pkl). Nothing in such a file is executed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/core/types.h"

namespace dtrain {

struct TorchEntry {
  std::string name{};   // "conv1.weight"; names of nested dictionaries are joined by dots
  std::string dtype{};  // as in safetensors: "F32", "BF16", "I64" ...
  Shape shape{};
};

// Open file, and the tensors of its state_dict: the file's own dictionary, or the one under "state_dict",
// "model", "model_state" and similar keys, in that order. Failures throw Error(fault) naming file and tensor.
class TorchFile {
 public:
  explicit TorchFile(const std::string& path, Fault fault = Fault::data);
  ~TorchFile();
  TorchFile(TorchFile&&) noexcept;
  TorchFile& operator=(TorchFile&&) noexcept;

  const std::string& path() const;
  const std::vector<TorchEntry>& entries() const;  // in the dictionary's order
  // Keys that lead to the state_dict, e.g. "model"; empty if the file is one.
  const std::string& location() const;
  // Other keys of the file: "optimizer", "epoch" ...
  const std::vector<std::string>& others() const;
  // Elements of a tensor, row-major, rounded to nearest f32. Throws Error for a type other than F32, F16, BF16 and F64.
  std::vector<float> read_floats(const std::string& name) const;
  // The same in the tensor's own type. Throws Error for a type that safetensors do not have, such as complex numbers.
  std::string read_bytes(const std::string& name) const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

// Whether a file that begins with these bytes is in one of the formats; a ZIP archive may also be something else.
bool begins_torch_file(std::string_view bytes);

}  // namespace dtrain
