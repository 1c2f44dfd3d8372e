// Element types of array files, by their names in safetensors ("F32") and in NumPy ("f4").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// Size in bytes of an element of a safetensors type; 0 if unknown.
size_t bytes_of_dtype(std::string_view dtype);
// NumPy's name of a safetensors type, without byte order; empty if NumPy does not have it: BF16, F8.
std::string_view numpy_type(std::string_view dtype);
// The reverse; empty if safetensors does not have it.
std::string_view dtype_of_numpy(std::string_view type);

// Reads an unaligned element as f32, rounded to nearest.
using ElementReader = float (*)(const char*);
// Null for types without one: F8 and unknown types.
ElementReader element_reader(std::string_view dtype);
// Elements of a safetensors type that has an element_reader().
std::vector<float> floats_of(std::string_view dtype, const std::string& elements);

}  // namespace dtrain
