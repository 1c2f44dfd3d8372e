// Gathers and checks texts of other ranks, which may hold anything: a rank that knows the secret may still lie.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "libdtrain/distributed/group.h"

namespace dtrain {

// Of a rank's text in one collective. The detections of all of COCO's validation set, with masks, are about 60 MB.
inline constexpr size_t kMostTextBytes = size_t{512} << 20;

// Gathers a text of each rank and has `read` take them, by rank. Where it throws, that is Error(Fault::communication),
// which says `what` and the rank's name; lack of memory stays what it is. Collective.
void read_texts(Group& group, const std::string& mine, const char* what,
                const std::function<void(int rank, const std::string& text)>& read);

// The same for a text that one rank gave.
void read_text(const Group& group, int rank, const std::string& text, const char* what,
               const std::function<void(const std::string& text)>& read);

// Throws Error where `text` is anything but one number that the type holds.
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
