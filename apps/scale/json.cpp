#include "apps/scale/json.h"

#include <cmath>

#include <fmt/format.h>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::scale {

JsonObject::JsonObject(const nlohmann::json& json, std::string file, std::string path)
    : json_(&json), file_(std::move(file)), path_(std::move(path)) {
  if (!json.is_object())
    throw Error(fmt::format("{}: {}: expected an object, found {}", file_, path_.empty() ? "the file" : path_,
                            json.type_name()));
}

std::string JsonObject::place(const std::string& key) const {
  return fmt::format("{}: {}{}{}", file_, path_, path_.empty() ? "" : ".", key);
}

const nlohmann::json& JsonObject::at(const std::string& key) const {
  const auto found = json_->find(key);
  if (found == json_->end()) throw Error(place(key) + " is missing");
  return *found;
}

std::string JsonObject::text(const std::string& key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_string()) throw Error(fmt::format("{}: expected a text, found {}", place(key), value.dump()));
  return value.get<std::string>();
}

double JsonObject::number(const std::string& key) const {
  const nlohmann::json& value = at(key);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0) || !std::isfinite(number))
    throw Error(fmt::format("{}: expected a number that is not negative, found {}", place(key), value.dump()));
  return number;
}

std::optional<double> JsonObject::number_if_any(const std::string& key) const {
  if (!json_->contains(key)) return std::nullopt;
  return number(key);
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_array() || value.empty())
    throw Error(fmt::format("{}: expected an array with at least one object", place(key)));
  std::vector<JsonObject> all;
  for (size_t i = 0; i < value.size(); ++i)
    all.emplace_back(value[i], file_, fmt::format("{}{}{}[{}]", path_, path_.empty() ? "" : ".", key, i));
  return all;
}

JsonFile::JsonFile(const std::string& path) : path_(path) {
  const std::string text = read_text(path, JsonLimits{}.bytes, Fault::config);
  json_ = parse_json<nlohmann::json>(text, path, Fault::config);
}

}  // namespace dtrain::scale
