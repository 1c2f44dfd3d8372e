// A bound on how deeply a TOML file nests, for toml++, which recurses over what it has parsed.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::cli {

constexpr size_t kMaxKeyParts = 16;      // "a.b" has two
constexpr size_t kMaxOpenBrackets = 16;  // of arrays, inline tables and headers

// Throws Error(Fault::config) with path and line where a key or the brackets of `text` exceed these limits. Takes
// linear time and constant memory. Of text that is no TOML it checks at least what precedes the first syntax error.
void check_toml_depth(std::string_view text, const std::string& path);

}  // namespace dtrain::cli
