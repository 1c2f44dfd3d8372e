// JSON parsing of untrusted input: limits are checked before a tree is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "dtrain/core/error.h"

namespace dtrain {

// In the worst case (every byte opens an array) a tree takes about 75 bytes of memory per byte of text.
struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int depth = 16;            // nesting depth of objects and arrays
  size_t keys = 10'000;      // per object
  size_t values = 10'000;    // strings, numbers, objects ... in total
  double seconds = 60;       // of processor time, for checking and building the tree
  bool (*stop)() = nullptr;  // polled every few KiB: true aborts
};

// Timeout of one parse: nlohmann's parsers read through its character iterators, which check the clock every few KiB.
// It counts the thread's processor time, so that a busy machine rejects no file.
class JsonDeadline {
 public:
  // All arguments must outlive this, which is for one thread.
  JsonDeadline(const std::string& where, Fault fault, const JsonLimits& limits);

  class Characters {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Characters(const char* at, const JsonDeadline* deadline) : at_(at), deadline_(deadline) {}
    const char& operator*() const { return *at_; }
    Characters& operator++() {
      ++at_;
      if (--until_check_ == 0) check();
      return *this;
    }
    bool operator==(const Characters& other) const { return at_ == other.at_; }

   private:
    void check();

    const char* at_;
    const JsonDeadline* deadline_;
    int until_check_ = 1;  // characters
  };
  Characters begin(std::string_view text) const { return {text.data(), this}; }
  Characters end(std::string_view text) const { return {text.data() + text.size(), this}; }

  // Why `text` is not JSON, not UTF-8, or beyond the limits; empty if it is valid. Linear time, no memory for a tree.
  // Throws Error(fault) on timeout, Error(Fault::resource) if stop() returns true.
  std::string problem_of(std::string_view text) const;

 private:
  // Throws on timeout.
  void check() const;

  const std::string& where_;
  const Fault fault_;
  const JsonLimits& limits_;
  const double begin_;
};

// Parses `text` to an nlohmann::json in linear time. Throws Error(fault), prefixed by `where`, for invalid JSON or
// UTF-8, or input beyond `limits`; Error(Fault::resource) if limits.stop() aborted.
template <class Json>
Json parse_json(std::string_view text, const std::string& where, Fault fault, const JsonLimits& limits = {}) {
  static_assert(
      requires(typename Json::object_t object) { object.lower_bound(std::string()); },
      "ordered_json takes quadratic time in the number of keys");
  const JsonDeadline deadline(where, fault, limits);
  if (const std::string problem = deadline.problem_of(text); !problem.empty())
    throw Error(fault, where + ": " + problem);
  return Json::parse(deadline.begin(text), deadline.end(text));
}

// Returns Json(value_t::discarded) instead of throwing, for callers that add details such as a line number.
template <class Json>
Json parse_json_line(std::string_view text, const JsonLimits& limits = {}) {
  try {
    return parse_json<Json>(text, "", Fault::data, limits);
  } catch (const Error&) {
    return Json(Json::value_t::discarded);
  }
}

// Integer object[key] of an nlohmann object, whose own conversion is undefined for values out of range. Throws
// Error(fault), prefixed by `where`, unless it is an integer in [0, most]; a missing key throws nlohmann's exception.
template <class Json>
uint64_t count_at(const Json& object, const char* key, uint64_t most, const std::string& where, Fault fault) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned() || value.template get<uint64_t>() > most)
    throw Error(fault, concat(where, ": ", key, " is ", value.dump(), ", expected 0 to ", most));
  return value.template get<uint64_t>();
}

}  // namespace dtrain
