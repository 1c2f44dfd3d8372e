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

// Alternatives of "000..146" or "a,b"; nothing for other texts.
std::optional<std::vector<std::string>> alternatives(const std::string& pattern, std::string_view inner) {
  std::vector<std::string> found;
  if (const size_t dots = inner.find(".."); dots != inner.npos) {
    const std::string_view first = inner.substr(0, dots), last = inner.substr(dots + 2);
    if (!is_short_number(first) || !is_short_number(last)) return std::nullopt;
    const uint64_t from = std::stoull(std::string(first)), to = std::stoull(std::string(last));
    // As in shells: one number with a leading zero pads all to the longer one.
    const bool pads = (first.size() > 1 && first[0] == '0') || (last.size() > 1 && last[0] == '0');
    const size_t width = pads ? std::max(first.size(), last.size()) : 1;
    if (std::max(from, to) - std::min(from, to) >= kMostExpansions) fail_pattern(pattern, "more than 1000000 files");
    for (uint64_t i = from;; from <= to ? ++i : --i) {
      found.push_back(fmt::format("{:0{}}", i, width));
      if (i == to) return found;
    }
  }
  if (inner.find(',') == inner.npos) return std::nullopt;
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
      fail_pattern(pattern, "its braces are nested or have no partner; expected {000..146} or {a,b}");
    const std::string inner = pattern.substr(open + 1, close - open - 1);
    const auto parts = alternatives(pattern, inner);
    append(parts ? *parts : std::vector<std::string>{concat("{", inner, "}")});
    at = close + 1;
  }
  return all;
}

}  // namespace dtrain::data
