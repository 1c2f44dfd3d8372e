#include "libdtrain/io/json_limits.h"

#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

// Counts nlohmann's SAX events; the first one beyond a limit ends the parsing.
class Counter {
 public:
  explicit Counter(const JsonLimits& limits) : limits_(limits) {}

  const std::string& problem() const { return problem_; }

  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(int64_t) { return value(); }
  bool number_unsigned(uint64_t) { return value(); }
  bool number_float(double, const std::string&) { return value(); }
  bool string(std::string&) { return value(); }
  bool binary(nlohmann::json::binary_t&) { return value(); }
  bool key(std::string&) { return true; }
  bool start_object(size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool start_array(size_t) { return enter(); }
  bool end_array() { return leave(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail(concat("invalid JSON or UTF-8 at byte ", position));
  }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool value() { return ++values_ <= limits_.values || fail(concat("JSON of more than ", limits_.values, " values")); }
  bool enter() {
    if (++depth_ > limits_.depth) return fail(concat("JSON nested more than ", limits_.depth, " deep"));
    return value();
  }
  bool leave() {
    --depth_;
    return true;
  }

  const JsonLimits& limits_;
  std::string problem_;
  size_t values_ = 0;
  int depth_ = 0;
};

}  // namespace

void check_json(std::string_view text, const std::string& where, Fault fault, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    throw Error(fault, concat(where, ": JSON of ", text.size(), " bytes, expected at most ", limits.bytes));
  Counter counter(limits);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &counter))
    throw Error(fault, concat(where, ": ", counter.problem()));
}

}  // namespace dtrain
