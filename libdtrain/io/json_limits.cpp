#include "libdtrain/io/json_limits.h"

#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

namespace dtrain {
namespace {

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// SAX handler that counts events; aborts at the first limit exceeded.
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
  bool key(std::string&) {
    return ++keys_.back() <= limits_.keys || fail(concat("JSON object of more than ", limits_.keys, " keys"));
  }
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
    keys_.push_back(0);
    if (keys_.size() > static_cast<size_t>(limits_.depth))
      return fail(concat("JSON nested more than ", limits_.depth, " deep"));
    return value();
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  std::string problem_;
  size_t values_ = 0;
  std::vector<size_t> keys_;  // per open object or array, outermost first
};

}  // namespace

JsonDeadline::JsonDeadline(const std::string& where, Fault fault, const JsonLimits& limits)
    : where_(where), fault_(fault), limits_(limits), begin_(thread_seconds()) {}

void JsonDeadline::check() const {
  if (limits_.stop != nullptr && limits_.stop())
    throw Error(Fault::resource, where_ + ": the reading of its JSON was stopped");
  if (thread_seconds() - begin_ > limits_.seconds)
    throw Error(fault_, concat(where_, ": JSON that takes more than ", limits_.seconds, " s to read"));
}

void JsonDeadline::Characters::check() {
  constexpr int kCharacters = 4096;  // between checks
  deadline_->check();
  until_check_ = kCharacters;
}

std::string JsonDeadline::problem_of(std::string_view text) const {
  if (text.size() > limits_.bytes) return concat("JSON of ", text.size(), " bytes, expected at most ", limits_.bytes);
  Counter counter(limits_);
  nlohmann::json::sax_parse(begin(text), end(text), &counter);
  return counter.problem();
}

}  // namespace dtrain
