#include "data/brace_pattern.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

constexpr size_t kMostExpansions = 1'000'000;
constexpr size_t kMostDigits = 12;

[[noreturn]] void fail_pattern(const std::string& pattern, const char* what) {
  throw Error(Fault::data, concat(pattern, ": ", what));
}

bool is_short_number(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_letter(std::string_view text) {
  return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
}

// Whether two letters are both small or both large.
bool is_range_of_letters(std::string_view first, std::string_view last) {
  return is_letter(first) && is_letter(last) && (first[0] >= 'a') == (last[0] >= 'a');
}

// Numbers "000..146" or letters "a..c", with a step as in "0..8..2"; nothing for other texts.
std::optional<std::vector<std::string>> range_of(const std::string& pattern, std::string_view inner) {
  const size_t dots = inner.find("..");
  const std::string_view first = inner.substr(0, dots);
  std::string_view last = inner.substr(dots + 2), by = "1";
  if (const size_t more = last.find(".."); more != last.npos) {
    by = last.substr(more + 2);
    last = last.substr(0, more);
  }
  const bool letters = is_range_of_letters(first, last);
  if ((!letters && (!is_short_number(first) || !is_short_number(last))) || !is_short_number(by)) return std::nullopt;
  const auto value = [&](std::string_view text) {
    return letters ? static_cast<uint64_t>(text[0]) : std::stoull(std::string(text));
  };
  const uint64_t from = value(first), to = value(last), distance = std::max(from, to) - std::min(from, to);
  const uint64_t step = std::max<uint64_t>(std::stoull(std::string(by)), 1);
  if (distance / step >= kMostExpansions) fail_pattern(pattern, "more than 1000000 files");
  // As in shells: one number with a leading zero pads all to the longer one.
  const bool pads = (first.size() > 1 && first[0] == '0') || (last.size() > 1 && last[0] == '0');
  const size_t width = pads ? std::max(first.size(), last.size()) : 1;
  std::vector<std::string> found;
  for (uint64_t done = 0; done <= distance; done += step) {
    const uint64_t number = from <= to ? from + done : from - done;
    found.push_back(letters ? std::string(1, static_cast<char>(number)) : fmt::format("{:0{}}", number, width));
  }
  return found;
}

// Alternatives of a range or "a,b"; nothing for other texts.
std::optional<std::vector<std::string>> alternatives(const std::string& pattern, std::string_view inner) {
  if (inner.find("..") != inner.npos && inner.find(',') == inner.npos) return range_of(pattern, inner);
  if (inner.find(',') == inner.npos) return std::nullopt;
  std::vector<std::string> found;
  for (size_t begin = 0; begin <= inner.size();) {
    const size_t end = std::min(inner.find(',', begin), inner.size());
    found.emplace_back(inner.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  std::vector<std::string> all{""};
  const auto append = [&](const std::vector<std::string>& parts) {
    if (all.size() * parts.size() > kMostExpansions) fail_pattern(pattern, "more than 1000000 files");
    std::vector<std::string> longer;
    for (const std::string& begin : all)
      for (const std::string& part : parts) longer.push_back(begin + part);
    all = std::move(longer);
  };
  for (size_t at = 0; at < pattern.size();) {
    const size_t open = std::min(pattern.find_first_of("{}", at), pattern.size());
    if (open > at) append({pattern.substr(at, open - at)});
    if (open == pattern.size()) break;
    const size_t close = pattern.find_first_of("{}", open + 1);
    if (pattern[open] == '}' || close == pattern.npos || pattern[close] == '{')
      fail_pattern(pattern,
                   "its braces are nested or have no partner; expected {000..146}, {0..8..2}, {a..c} or {a,b}");
    const std::string inner = pattern.substr(open + 1, close - open - 1);
    const auto parts = alternatives(pattern, inner);
    append(parts ? *parts : std::vector<std::string>{concat("{", inner, "}")});
    at = close + 1;
  }
  return all;
}

}  // namespace dtrain::data
