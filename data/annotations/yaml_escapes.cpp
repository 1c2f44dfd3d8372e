#include "data/annotations/yaml_escapes.h"

#include <charconv>
#include <cstdint>

namespace dtrain::data::annotations {
namespace {

void append_utf8(uint32_t code, std::string& text) {
  const auto byte = [&](uint32_t bits) { text += static_cast<char>(static_cast<unsigned char>(bits)); };
  const auto next = [&](int shift) { byte(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) return byte(0xc0 | (code >> 6)), next(0);
  if (code < 0x10000) return byte(0xe0 | (code >> 12)), next(6), next(0);
  byte(0xf0 | (code >> 18)), next(12), next(6), next(0);
}

}  // namespace

size_t append_escape(std::string_view rest, std::string& text) {
  constexpr std::string_view kNames = "\\\"/ tnr", kValues = "\\\"/ \t\n\r";
  if (rest.empty()) return 0;
  if (const size_t found = kNames.find(rest[0]); found != kNames.npos) {
    text += kValues[found];
    return 1;
  }
  const size_t digits = rest[0] == 'x' ? 2 : rest[0] == 'u' ? 4 : rest[0] == 'U' ? 8 : 0;
  const std::string_view number = rest.substr(1, digits);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), code, 16);
  const bool is_number = digits > 0 && number.size() == digits && error == std::errc() && end == &number.back() + 1;
  if (!is_number || code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  append_utf8(code, text);
  return 1 + digits;
}

}  // namespace dtrain::data::annotations
