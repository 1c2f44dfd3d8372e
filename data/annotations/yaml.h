// Reader of the subset of YAML in which data.yaml files are written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain::data::annotations {

// A scalar is text, whatever its type: "yes", "1.0", "". A missing value is an empty scalar.
struct YamlValue {
  enum class Kind { scalar, list, map };
  Kind kind = Kind::scalar;
  std::string text{};
  std::vector<YamlValue> items{};
  std::vector<std::pair<std::string, YamlValue>> entries{};  // in the order of the file

  // Value of a key; null without it.
  const YamlValue* find(std::string_view key) const;
};

inline constexpr size_t kMaxYamlBytes = size_t{1} << 20, kMaxYamlValues = 100'000;
inline constexpr int kMaxYamlDepth = 16;

// Parses a map: block and flow maps and lists, plain and quoted scalars of one line, block scalars, comments. Throws
// Error(Fault::data), "WHERE: line 3: ...", for anything else, such as anchors, aliases, tags, several documents and
// duplicate keys, and beyond the limits.
YamlValue parse_yaml(std::string_view text, const std::string& where);

}  // namespace dtrain::data::annotations
