// Escapes of double-quoted scalars in YAML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain::data::annotations {

// Appends the text of the escape that begins behind a backslash, such as "n", "x41" or "u00e9". Returns its length, or
// 0 for one that is not supported.
size_t append_escape(std::string_view rest, std::string& text);

}  // namespace dtrain::data::annotations
