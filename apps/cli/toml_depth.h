// Limit on the nesting depth of TOML files, because toml++ recurses over the parsed tree.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::cli {

constexpr size_t kMaxKeyParts = 16;      // "a.b" has two
constexpr size_t kMaxOpenBrackets = 16;  // nesting of arrays, inline tables and headers

// Throws Error(Fault::config) with path and line if a key or the brackets of `text` exceed the limits. Linear time,
// constant memory. Of invalid TOML, it checks at least the part before the first syntax error.
void check_toml_depth(std::string_view text, const std::string& path);

}  // namespace dtrain::cli
