// Tensors of a pickle: PyTorch's calls of torch._utils._rebuild_tensor_v2 and NumPy's of _reconstruct.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/core/types.h"
#include "libdtrain/io/pickle.h"

namespace dtrain {

// A part of a storage, seen through strides.
struct StoredTensor {
  std::string name{};
  std::string dtype{};  // of safetensors; "" if unknown
  size_t bytes_of_element = 0;
  Shape shape{};
  std::vector<int64_t> strides{};        // elements
  uint64_t offset = 0, end = 0;          // elements of the storage that the tensor spans; 0 if it is empty
  std::string storage{};                 // key of the storage; empty for an array within the pickle
  uint64_t storage_elements = 0;         // stated by the pickle
  const pickle::Value* array = nullptr;  // bytes of a NumPy array, as they are in the pickle
  bool utf8 = false;                     // they are encoded as Latin-1 text in UTF-8
};

struct StateDict {
  std::vector<StoredTensor> tensors{};
  std::string location{};             // keys that lead to it, joined by dots
  std::vector<std::string> others{};  // other keys on the way
};

// Throws Error(fault), prefixed by `where`, if there are no tensors, or one is malformed. Pointers into `pickle` are
// kept.
StateDict state_dict_of(const pickle::Pickle& pickle, const std::string& where, Fault fault);

}  // namespace dtrain
