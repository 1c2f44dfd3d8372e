// JSON reader with file and key in its errors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dtrain::scale {

// A JSON object with its path in the file: "layers[3]". All throw Error for a missing key, a wrong type, or a negative
// number.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& json, std::string file, std::string path);

  std::string text(const std::string& key) const;
  double number(const std::string& key) const;
  std::optional<double> number_if_any(const std::string& key) const;
  std::vector<JsonObject> objects(const std::string& key) const;  // a non-empty array

 private:
  const nlohmann::json& at(const std::string& key) const;
  std::string place(const std::string& key) const;

  const nlohmann::json* json_;
  std::string file_, path_;
};

class JsonFile {
 public:
  // Throws Error if it cannot be read or is not JSON.
  explicit JsonFile(const std::string& path);
  JsonObject root() const { return {json_, path_, ""}; }

 private:
  std::string path_;
  nlohmann::json json_;
};

}  // namespace dtrain::scale
