// Lines for people, on stderr: each of one line, whatever the names and texts in it hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain::cli {

// `text` as a part of one line that says what it seems to say. Line breaks and other control characters, but for tabs,
// what turns the direction of writing, and bytes that are no UTF-8 become \n, \x1b, \u202e, \xff; all else stays.
std::string escaped(std::string_view text);

// Prints "kind: text" on stderr, escaped and cut where it is absurdly long, in one piece, so that what several ranks
// print does not mix; and without a lock that another thread may hold. Where it cannot be written it is lost.
void print_message(std::string_view kind, std::string_view text) noexcept;
// A message "note" of each text.
void print_notes(const std::vector<std::string>& texts) noexcept;

// Prints the bytes as they are. The same holds.
void print_on_stderr(std::string_view text) noexcept;

}  // namespace dtrain::cli
