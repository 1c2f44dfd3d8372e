// SAX parser of safetensors headers: memory stays proportional to the text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/io/safetensors.h"

namespace dtrain {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in file order; `offset` counts from the end of the header
  SafetensorsMetadata metadata;
};

// Throws Error(fault), prefixed by `path`, for errors visible in the header alone: invalid UTF-8 or JSON, missing,
// duplicate or unknown keys, unknown dtype, negative, fractional or overflowing numbers, a size that is not shape x
// element size.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path, Fault fault);

// The same tensors with their types in safetensors' spelling, without place in a file.
std::vector<SafetensorsEntry> entries_of(std::span<const TensorSpec> tensors);

}  // namespace dtrain
