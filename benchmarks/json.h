// JSON output of benchmarks, without the headers of a JSON library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtrain {

// Member of a JSON object. Non-finite numbers become null.
class JsonField {
 public:
  JsonField(const char* name, bool value);
  JsonField(const char* name, int value) : JsonField(name, int64_t{value}) {}
  JsonField(const char* name, int64_t value);
  JsonField(const char* name, size_t value);
  JsonField(const char* name, double value);
  JsonField(const char* name, const char* value);
  JsonField(const char* name, const std::string& value);
  JsonField(const char* name, const std::vector<double>& values);
  JsonField(const char* name, const std::map<std::string, double>& values);  // an object

  const std::string& text() const { return text_; }  // "name":value

 private:
  std::string text_;
};
using JsonObject = std::vector<JsonField>;  // in order

// Prints an object as one line on stdout.
void print_json(const JsonObject& object);

// Prints results in the format of Google Benchmark's --benchmark_format=json: {"benchmarks":[...],"context":{...}}, one
// object per line.
void print_json(const std::vector<JsonObject>& benchmarks, const JsonObject& context);

}  // namespace dtrain
