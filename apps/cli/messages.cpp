#include "apps/cli/messages.h"

#include <algorithm>
#include <cstdint>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/output.h"

namespace dtrain::cli {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: invalid UTF-8
};

// The first character of `text`, which is not empty.
Character first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[bytes] || code > 0x10ffff || surrogate ? Character{} : Character{code, bytes};
}

bool is_safe(uint32_t code) {
  if (code < 0x20) return code == '\t';
  const bool control = code >= 0x7f && code < 0xa0, break_of_line = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069) || code == 0x061c;
  return !control && !break_of_line && !turns;
}

std::string escape_of(uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    default:
      return code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

// Truncates absurdly long lines.
std::string cut(std::string line) {
  constexpr size_t kMost = 8000;
  if (line.size() <= kMost) return line;
  size_t end = kMost;
  while ((static_cast<uint8_t>(line[end]) & 0xc0) == 0x80) --end;  // whole characters
  return fmt::format("{} ... and {} bytes more", std::string_view(line).substr(0, end), line.size() - end);
}

// Without the queries of URLs, which may be signatures.
std::string without_queries(std::string_view text) {
  std::string line;
  for (size_t at; (at = text.find("://")) != text.npos;) {
    const std::string_view scheme = text.substr(0, at);
    const bool is_web = scheme.ends_with("http") || scheme.ends_with("https");
    const size_t end = std::min(text.find_first_of(" \t\n\"'", at), text.size());
    const size_t query = is_web ? std::min(text.find('?', at), end) : end;
    line += text.substr(0, query);
    if (query < end) line += text[end - 1] == ':' ? "?...:" : "?...";
    text.remove_prefix(end);
  }
  return line.append(text);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const auto [code, bytes] = first_of(text);
    if (bytes == 0)
      line += escape_of(static_cast<uint8_t>(text[0]));
    else if (is_safe(code))
      line += text.substr(0, bytes);
    else
      line += escape_of(code);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return line;
}

void print_on_stderr(std::string_view text) noexcept { write_patiently(STDERR_FILENO, text); }

void print_notes(const std::vector<std::string>& texts) noexcept {
  for (const std::string& text : texts) print_message("note", text);
}

void print_message(std::string_view kind, std::string_view text) noexcept {
  try {
    print_on_stderr(fmt::format("{}: {}\n", kind, cut(escaped(without_queries(text)))));
  } catch (const std::exception&) {  // no memory for the line
    for (const std::string_view part : {kind, std::string_view(": out of memory\n")}) print_on_stderr(part);
  }
}

}  // namespace dtrain::cli
