// Gathering and validation of untrusted texts from other ranks.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "dtrain/distributed/group.h"

namespace dtrain {

// Limit per rank and collective. Detections on COCO val2017 with masks take about 60 MB.
inline constexpr size_t kMostTextBytes = size_t{512} << 20;

// All-gathers a text per rank and parses each by `read`. Exceptions become Error(Fault::communication) with `what` and
// the rank's name; out-of-memory errors are passed on. Collective.
void read_texts(Group& group, const std::string& mine, const char* what,
                const std::function<void(int rank, const std::string& text)>& read);

// The same for one rank's text.
void read_text(const Group& group, int rank, const std::string& text, const char* what,
               const std::function<void(const std::string& text)>& read);

// Parses one number of type Number. Throws Error for any other text.
template <class Number>
Number number_in(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end)
    throw Error(concat("'", text.substr(0, 40), text.size() > 40 ? "..." : "", "', expected a number"));
  return value;
}

}  // namespace dtrain
