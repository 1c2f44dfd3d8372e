#include "apps/cli/toml_depth.h"

#include <algorithm>

#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

// Position after the string that starts at `begin`; for an unterminated string, the end of its line or of the text.
size_t end_of_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const bool multi_line = text.substr(begin, 3) == std::string(3, quote);
  for (size_t i = begin + (multi_line ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == '\n' && !multi_line) {
      return i;
    } else if (text[i] == quote) {
      if (!multi_line) return i + 1;
      const size_t quotes = std::min(text.find_first_not_of(quote, i), text.size()) - i;
      if (quotes >= 3) return i + std::min<size_t>(quotes, 5);  // the string may end in two quotes
      i += quotes - 1;
    }
  }
  return text.size();
}

}  // namespace

void check_toml_depth(std::string_view text, const std::string& path) {
  size_t parts = 1, open = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(text, i) - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.') {
      ++parts;
    } else if (c == '[' || c == '{') {
      ++open;
      parts = 1;
    } else if (c == ']' || c == '}') {
      open -= open > 0;
      parts = 1;
    } else if (c == '=' || c == ',' || c == '\n') {
      parts = 1;
    }
    if (parts <= kMaxKeyParts && open <= kMaxOpenBrackets) continue;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
    const std::string found = parts > kMaxKeyParts ? concat("a key or value of more than ", kMaxKeyParts, " parts")
                                                   : concat("more than ", kMaxOpenBrackets, " brackets open at a time");
    throw Error(Fault::config,
                concat(path, ":", line, ": ", found, ", expected the name of a flag, alone or in a table"));
  }
}

}  // namespace dtrain::cli
