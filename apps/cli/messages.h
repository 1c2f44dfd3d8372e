// Messages on stderr: always a single line, whatever the names in it contain.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain::cli {

// Escapes `text` for a single line. Line breaks, control characters except tabs, bidirectional controls and invalid
// UTF-8 become \n, \x1b, \u202e, \xff; everything else is unchanged.
std::string escaped(std::string_view text);

// Prints "kind: text" on stderr, escaped, truncated and without the queries of URLs, with a single write, so that
// output of ranks does not interleave, and without locks. Write errors are ignored.
void print_message(std::string_view kind, std::string_view text) noexcept;
// Prints a "note" message per text.
void print_notes(const std::vector<std::string>& texts) noexcept;

// Prints the bytes unchanged; otherwise the same.
void print_on_stderr(std::string_view text) noexcept;

}  // namespace dtrain::cli
