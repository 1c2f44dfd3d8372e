// Configuration files: flags in TOML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain::cli {

// A flag's name and value.
struct ConfigEntry {
  std::string name;
  std::string kind;   // type of the value: "bool", "int", "float", "string" or "list"
  std::string text;   // lists are comma-separated
  std::string where;  // "run.toml:12"
};

// All keys of the file and its tables (table names are ignored), in line order. Throws Error(Fault::config) with file
// and line for invalid TOML or a value of the wrong type, and if the file cannot be read, exceeds 1 MiB, or nests more
// deeply than toml_depth.h allows.
std::vector<ConfigEntry> read_config_entries(const std::string& path);
// The same for a file's text.
std::vector<ConfigEntry> config_entries_of(std::string_view text, const std::string& path);

// Throws Error if the value does not fit `type`, which is bool, int, float, string, list, or choices.
void require_kind(const ConfigEntry& entry, const std::string& type);

// A flag's value in TOML syntax.
std::string toml_value(const std::string& type, const std::string& text);

// Whether both texts set the same flags to the same values. False if one is invalid TOML or nests too deeply.
bool same_settings(const std::string& a, const std::string& b);

}  // namespace dtrain::cli
