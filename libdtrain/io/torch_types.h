// Names of element types, storages and functions in pickles of PyTorch and NumPy.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace dtrain {

struct ElementType {
  std::string_view name;     // of torch.dtype
  std::string_view storage;  // of a typed storage; empty if there is none
  std::string_view dtype;    // of safetensors
};

// Type by its torch.dtype or its storage, "torch.float32" or "torch.FloatStorage"; null if unknown.
const ElementType* element_type(std::string_view name);
// Size in bytes of an element of a storage of PyTorch, complex ones included; 0 if unknown.
size_t storage_bytes(std::string_view storage);
// Whether the element type is an argument of the tensor.
bool is_untyped_storage(std::string_view name);

// Globals that pickles of tensors may name.
std::span<const std::string_view> tensor_globals();

}  // namespace dtrain
