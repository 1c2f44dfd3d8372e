#include "apps/observers/mlperf_line.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

using Json = nlohmann::ordered_json;

// Like Python's json.dumps: a space after commas and colons.
std::string python_text(const Json& value) {
  if (!value.is_structured() || value.empty()) return value.dump();
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ", ";
    if (value.is_object()) text += Json(key).dump() + ": ";
    text += python_text(item);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// Relative to the source root, independent of the build path.
std::string_view relative(std::string_view file) {
  const size_t apps = file.rfind("apps/");
  return apps == file.npos ? file : file.substr(apps);
}

}  // namespace

std::string mlperf_line(std::string_view benchmark, double seconds, const std::source_location& where,
                        std::string_view tag, const Json& value) {
  return fmt::format(":::MLPv0.5.0 {} {:.9f} ({}:{}) {}{}", benchmark, seconds, relative(where.file_name()),
                     where.line(), tag, value.is_null() ? "" : ": " + python_text(value));
}

std::string mlperf_line(std::string_view benchmark, std::string_view tag, const Json& value,
                        const std::source_location& where) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return mlperf_line(benchmark, std::chrono::duration<double>(now).count(), where, tag, value);
}

}  // namespace dtrain::observers
