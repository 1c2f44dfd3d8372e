// Reads TOML with toml++; writes a simple subset itself.
#include "apps/cli/config_file.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <toml++/toml.h>
#include <nlohmann/json.hpp>

#include "apps/cli/flags.h"
#include "apps/cli/messages.h"
#include "apps/cli/toml_depth.h"
#include "apps/cli/values.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"

namespace dtrain::cli {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;

// Display names of value types.
const std::map<std::string, const char*> kKinds = {{"bool", "true or false"},
                                                   {"int", "an integer"},
                                                   {"float", "a number"},
                                                   {"string", "a string"},
                                                   {"list", "an array of strings or numbers"}};

struct Value {
  std::string kind, text;
};

// Works around undefined behaviour of toml++ 3.3 in its whitespace test of most characters from U+00A1 to U+FEFF:
// characters of two and three bytes are moved up by 0x100000 into a private-use plane, by replacing the first byte with
// the first two or three bytes of a four-byte character.
std::string raised(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  std::string result;
  for (const char c : text) {
    const unsigned byte = static_cast<uint8_t>(c);
    if (byte >> 4 == 0xE) {
      result += {'\xF4', static_cast<char>(0x80 | (byte & 0x0F))};
    } else if (byte >> 5 == 0x6) {
      result += {'\xF4', '\x80', static_cast<char>(0x80 | (byte & 0x1F))};
    } else {
      result += c;
    }
  }
  return result;
}

// The inverse, for valid UTF-8 from toml++.
std::string lowered(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '\xF4' || text.size() - i < 4) {
      result += text[i];
      continue;
    }
    const unsigned second = static_cast<uint8_t>(text[i + 1]), third = static_cast<uint8_t>(text[i + 2]);
    const bool of_two = second == 0x80 && third < 0xA0;
    result += static_cast<char>(of_two ? 0xC0 | (third & 0x1F) : 0xE0 | (second & 0x0F));
    i += of_two ? 2 : 1;
  }
  return result;
}

// Throws Error if the text nests too deeply, and toml::parse_error.
toml::table parsed(std::string_view text, const std::string& path) {
  check_toml_depth(text, path);
  return toml::parse(raised(text));
}

// Type of a non-array value; empty if no flag has that type.
Value scalar(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return {"bool", **value ? "true" : "false"};
  if (const auto* value = node.as_integer()) return {"int", fmt::format("{}", **value)};
  if (const auto* value = node.as_floating_point()) return {"float", fmt::format("{}", **value)};
  if (const auto* value = node.as_string()) return {"string", lowered(**value)};
  return {};
}

Value value_of(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) {
    Value value = scalar(node);
    DT_CHECK(!value.kind.empty(), "expected a string, a number, true, false or an array, found a date or a time");
    return value;
  }
  Value list{"list", ""};
  for (const toml::node& element : *array) {
    const Value value = scalar(element);
    DT_CHECK(!value.kind.empty() && value.kind != "bool", "expected an array of strings or numbers");
    DT_CHECK(!value.text.empty() && value.text.find(',') == std::string::npos, "element '", value.text,
             "': expected one that is not empty and has no comma in it");
    list.text += (list.text.empty() ? "" : ",") + value.text;
  }
  return list;
}

using Placed = std::pair<toml::source_index, ConfigEntry>;

void collect(const toml::table& table, const std::string& path, std::vector<Placed>& entries) {
  for (const auto& [key, node] : table) {
    if (const toml::table* inner = node.as_table()) {
      collect(*inner, path, entries);
      continue;
    }
    const toml::source_index line = key.source().begin.line;
    const std::string where = fmt::format("{}:{}", path, line);
    try {
      auto [kind, text] = value_of(node);
      entries.push_back({line, {lowered(key.str()), std::move(kind), std::move(text), where}});
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}: {}", where, lowered(key.str()), error.what()));
    }
  }
}

}  // namespace

std::vector<ConfigEntry> read_config_entries(const std::string& path) {
  return config_entries_of(read_text(path, kMaxBytes, Fault::config), path);
}

std::vector<ConfigEntry> config_entries_of(std::string_view text, const std::string& path) {
  std::vector<Placed> placed;
  try {
    collect(parsed(text, path), path, placed);
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", path, error.source().begin.line, lowered(error.description())));
  }
  std::ranges::stable_sort(placed, {}, &Placed::first);
  std::vector<ConfigEntry> entries;
  for (Placed& one : placed) entries.push_back(std::move(one.second));
  return entries;
}

void require_kind(const ConfigEntry& entry, const std::string& type) {
  const std::string expected = kKinds.contains(type) ? type : "string";  // choices are strings
  if (entry.kind == expected || (entry.kind == "int" && expected == "float")) return;
  throw Error(fmt::format("{}: expected {}, found {}", entry.name, kKinds.at(expected), kKinds.at(entry.kind)));
}

std::string toml_value(const std::string& type, const std::string& text) {
  if (type == "bool" || type == "int" || type == "float") return text;
  if (type == "list") {
    std::vector<std::string> elements;
    for (const std::string& element : split_list(text)) elements.push_back(toml_value("string", element));
    return fmt::format("[{}]", fmt::join(elements, ", "));
  }
  // JSON strings are TOML strings, except that TOML escapes one more character.
  std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (size_t at = 0; (at = quoted.find('\x7f', at)) != std::string::npos;) quoted.replace(at, 1, "\\u007f");
  return quoted;
}

bool same_settings(const std::string& a, const std::string& b) {
  try {
    return parsed(a, "") == parsed(b, "");
  } catch (const std::runtime_error&) {  // toml::parse_error or Error
    return false;
  }
}

void FlagSet::add_config_file() {
  group("Configuration");
  add("config", config_file_,
      "TOML file of flags, in tables of any names: `momentum = 0.9`, and arrays for lists; the command line takes "
      "precedence")
      .may_differ_per_rank();
  add("print_config", wants_config_,
      "print all flags that are set, with the origin of each, as a file for --config, and exit");
}

std::string FlagSet::config_text() const {
  std::string text =
      fmt::format("# The flags of a run of {}, and what set each; --config takes this file as it is.\n", program_);
  for (const std::string& group : groups()) {
    std::string lines;
    for (const Flag& flag : flags_) {
      if (flag.group_ != group || flag.origin_.empty() || flag.name_ == "config" || flag.name_ == "print_config")
        continue;
      lines += fmt::format("{}{} = {}  # {}\n", flag.implied_ ? "# " : "", flag.name_,
                           toml_value(flag.type_, flag.text_), escaped(flag.origin_));
    }
    if (!lines.empty()) text += fmt::format("\n# {}\n{}", group, lines);
  }
  return text;
}

}  // namespace dtrain::cli
