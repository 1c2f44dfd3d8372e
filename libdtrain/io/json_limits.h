// Trees of JSON from outside: the text is checked against limits before a parser makes a tree of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "libdtrain/core/error.h"

namespace dtrain {

// A tree takes about 75 bytes of memory per byte of text where each byte opens an array.
struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int depth = 16;            // of objects and arrays within one another
  size_t keys = 10'000;      // of one object
  size_t values = 10'000;    // strings, numbers, objects ... in all
  double seconds = 60;       // for the check and the tree together
  bool (*stop)() = nullptr;  // called every few KiB while JSON is read: true ends it
};

// Bounds the time of one reading: nlohmann's parsers take the text from its characters, which check the clock every few
// KiB.
class JsonDeadline {
 public:
  using Clock = std::chrono::steady_clock;
  // All three outlive this.
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

  // Why `text` is not JSON, not UTF-8, or beyond the limits; empty where it is within them. Takes time in proportion to
  // the text, and no memory for a tree. Throws Error(fault) once the time is over, and Error(Fault::resource) where
  // stop() says so.
  std::string problem_of(std::string_view text) const;

 private:
  // Throws where the time is over.
  void check() const;

  const std::string& where_;
  const Fault fault_;
  const JsonLimits& limits_;
  const Clock::time_point begin_;
};

// The tree of `text`, an nlohmann::json, made in time in proportion to the text. Throws Error(fault), its message
// beginning with `where`, for text that is not JSON or not UTF-8, or exceeds `limits`; Error(Fault::resource) where
// limits.stop() ended the reading.
template <class Json>
Json parse_json(std::string_view text, const std::string& where, Fault fault, const JsonLimits& limits = {}) {
  static_assert(
      requires(typename Json::object_t object) { object.lower_bound(std::string()); },
      "an object that keeps the order of its keys takes time in proportion to the square of their number");
  const JsonDeadline deadline(where, fault, limits);
  if (const std::string problem = deadline.problem_of(text); !problem.empty())
    throw Error(fault, where + ": " + problem);
  return Json::parse(deadline.begin(text), deadline.end(text));
}

// The same, and Json(value_t::discarded) for what is refused, of which the caller has more to say, such as its line.
template <class Json>
Json parse_json_line(std::string_view text, const JsonLimits& limits = {}) {
  try {
    return parse_json<Json>(text, "", Fault::data, limits);
  } catch (const Error&) {
    return Json(Json::value_t::discarded);
  }
}

// The whole number object[key] of an nlohmann object, whose own conversion has no defined result for one that does not
// fit. Throws Error(fault), its message beginning with `where`, for anything but a whole number from 0 to `most`, and
// what nlohmann throws where there is no such key.
template <class Json>
uint64_t count_at(const Json& object, const char* key, uint64_t most, const std::string& where, Fault fault) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned() || value.template get<uint64_t>() > most)
    throw Error(fault, concat(where, ": ", key, " is ", value.dump(), ", expected 0 to ", most));
  return value.template get<uint64_t>();
}

}  // namespace dtrain
