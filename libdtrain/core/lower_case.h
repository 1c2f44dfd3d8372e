// ASCII case conversion.
#pragma once

#include <string>

namespace dtrain {

// `text` with A to Z replaced by a to z.
inline std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace dtrain
