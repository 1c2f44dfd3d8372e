// The JSON of a safetensors header, parsed event by event, so that a hostile one costs no more memory than its size.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libdtrain/io/safetensors.h"

namespace dtrain {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // as written; `offset` counts from the end of the header
  SafetensorsMetadata metadata;
};

// Throws Error(fault), its message beginning with `path`, where `json` breaks a rule that can be seen in the header
// alone: not UTF-8 or not JSON, a missing, doubled or unknown key, an unknown dtype, a negative, fractional or
// overflowing number, a size that is not shape x element size.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path, Fault fault);

}  // namespace dtrain
