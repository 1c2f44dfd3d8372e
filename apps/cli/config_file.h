// Configurations: TOML files of flags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain::cli {

// A key and its value, as texts of a flag.
struct ConfigEntry {
  std::string name;
  std::string kind;   // of the value: "bool", "int", "float", "string" or "list"
  std::string text;   // elements of lists with commas between them
  std::string where;  // "run.toml:12"
};

// All keys of the file and of its tables, whose names say nothing, in the order of lines. Throws Error(Fault::config)
// with file and line where the text is not valid TOML or a value does not fit its flag, and where it cannot be read, is
// larger than 1 MiB, or nests more deeply than toml_depth.h allows.
std::vector<ConfigEntry> read_config_entries(const std::string& path);
// The same for a file's text.
std::vector<ConfigEntry> config_entries_of(std::string_view text, const std::string& path);

// Throws Error where the value is none for a flag of `type`, which is bool, int, float, string, list, or choices.
void require_kind(const ConfigEntry& entry, const std::string& type);

// A flag's text as a value of TOML.
std::string toml_value(const std::string& type, const std::string& text);

// Whether both texts set the same flags to the same values. False where one of them is no TOML or nests too deeply.
bool same_settings(const std::string& a, const std::string& b);

}  // namespace dtrain::cli
