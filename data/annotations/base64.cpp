#include "data/annotations/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "dtrain/core/error.h"

namespace dtrain::data::annotations {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> digit_values() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) values[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  return values;
}

}  // namespace

std::string decode_base64(std::string_view text) {
  static constexpr std::array<int8_t, 256> kValues = digit_values();
  if (text.starts_with("data:")) text.remove_prefix(std::min(text.find(',') + 1, text.size()));
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (size_t i = 0; i < text.size() && text[i] != '='; ++i) {
    if (text[i] == '\n' || text[i] == '\r') continue;
    const int8_t value = kValues[static_cast<unsigned char>(text[i])];
    if (value < 0) throw Error(Fault::data, concat("no base64: a character of code ", text[i] & 0xff, " at ", i));
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(static_cast<unsigned char>(bits >> count));
  }
  return bytes;
}

}  // namespace dtrain::data::annotations
