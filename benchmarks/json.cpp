// nlohmann/json formats names and numbers; objects are joined here to keep the order of members.
#include "benchmarks/json.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

using Json = nlohmann::ordered_json;

std::string field(const char* name, const Json& value) { return Json(name).dump() + ":" + value.dump(); }

std::string text_of(const JsonObject& object) {
  std::string text;
  for (const JsonField& one : object) text += (text.empty() ? "" : ",") + one.text();
  return "{" + text + "}";
}

void print(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace

JsonField::JsonField(const char* name, bool value) : text_(field(name, value)) {}
JsonField::JsonField(const char* name, int64_t value) : text_(field(name, value)) {}
JsonField::JsonField(const char* name, size_t value) : text_(field(name, value)) {}
JsonField::JsonField(const char* name, double value) : text_(field(name, value)) {}
JsonField::JsonField(const char* name, const char* value) : text_(field(name, value)) {}
JsonField::JsonField(const char* name, const std::string& value) : text_(field(name, value)) {}
JsonField::JsonField(const char* name, const std::vector<double>& values) : text_(field(name, values)) {}
JsonField::JsonField(const char* name, const std::map<std::string, double>& values) : text_(field(name, values)) {}

void print_json(const JsonObject& object) { print(text_of(object)); }

void print_json(const std::vector<JsonObject>& benchmarks, const JsonObject& context) {
  std::string rows;
  for (const JsonObject& one : benchmarks) rows += (rows.empty() ? "\n" : ",\n") + text_of(one);
  print("{\"benchmarks\":[" + rows + "\n],\"context\":" + text_of(context) + "}");
}

}  // namespace dtrain
