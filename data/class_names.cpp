#include "dtrain/data/class_names.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::data {
namespace {

constexpr size_t kMostNameBytes = size_t{64} << 20;
constexpr int64_t kMostLabel = int64_t{1} << 20;

void add_line(std::string_view line, const std::string& where, ClassNames& names) {
  int64_t label = 0;
  const auto [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), label);
  const std::string_view rest = line.substr(static_cast<size_t>(end - line.data()));
  const size_t name = rest.find_first_not_of(" \t");
  if (wrong != std::errc{} || label < 0 || label > kMostLabel || name == 0 || name == rest.npos)
    throw Error(Fault::data, concat(where, ": expected a label from 0 to ", kMostLabel, " and a name"));
  if (!names.emplace(label, rest.substr(name)).second)
    throw Error(Fault::data, concat(where, ": duplicate label ", label));
}

}  // namespace

std::string to_text(const ClassNames& names) {
  std::string text;
  for (const auto& [label, name] : names) text += concat(label, " ", name, "\n");
  return text;
}

ClassNames class_names_from(std::string_view text, const std::string& where) {
  ClassNames names;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t length = std::min(text.find('\n'), text.size());
    std::string_view one = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    one = one.substr(0, one.find_last_not_of(" \t\r") + 1);
    if (!one.empty()) add_line(one, concat(where, ": line ", line), names);
  }
  return names;
}

ClassNames read_class_names(const std::string& directory) {
  // Below an archive is nothing, and servers may refuse to say so.
  if (is_remote(directory) && directory.ends_with(".tar")) return {};
  const std::filesystem::path path = std::filesystem::path(directory) / kClassNamesFile;
  if (!file_exists(path.string())) return {};
  return class_names_from(read_text(path.string(), kMostNameBytes), path.string());
}

std::vector<std::string> names_by_output(const ClassNames& names, int64_t classes, int64_t label_offset) {
  if (names.empty()) return {};
  std::vector<std::string> outputs(static_cast<size_t>(classes));
  for (const auto& [label, name] : names)
    if (const int64_t output = label + label_offset; output >= 0 && output < classes)
      outputs[static_cast<size_t>(output)] = name;
  return outputs;
}

}  // namespace dtrain::data
