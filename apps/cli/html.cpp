#include "apps/cli/html.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/messages.h"

namespace dtrain::cli {

std::string html_text(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string out;
  for (const char c : escaped(text)) {
    const auto* const entity = std::ranges::find(kEntities, c, &std::pair<char, std::string_view>::first);
    if (entity == std::end(kEntities))
      out += c;
    else
      out += entity->second;
  }
  return out;
}

std::string data_uri(std::string_view type, std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = fmt::format("data:{};base64,", type);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) { return i + k < bytes.size() ? std::to_integer<uint32_t>(bytes[i + k]) : 0; };
    const uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t digit = 0; digit < 4; ++digit)
      out += i + digit <= bytes.size() ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
  }
  return out;
}

}  // namespace dtrain::cli
