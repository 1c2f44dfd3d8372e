// Parser of --all_reduce_spec.
#include "apps/cli/options/all_reduce_spec.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

// A positive integer; with `suffixes`, followed by K or M (or k, m). 0: anything else.
int64_t number_of(const std::string& text, bool suffixes) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (error != std::errc() || value <= 0 || value > kMost) return 0;
  if (stop == end) return value;
  const char suffix = *stop;
  if (!suffixes || stop + 1 != end) return 0;
  return suffix == 'k' || suffix == 'K' ? value << 10 : suffix == 'm' || suffix == 'M' ? value << 20 : 0;
}

AllReduceRange algorithm_of(const std::string& part, const std::string& spec) {
  constexpr const char* kKnown[] = {"nccl",  "nccl/xring", "nccl/rechd",  "nccl/pscpu", "xring",
                                    "pscpu", "psgpu",      "pscpu/pscpu", "collective"};
  const std::vector<std::string> pieces = split(part, '#');
  const int64_t shards = pieces.size() == 2 ? number_of(pieces[1], false) : 1;
  DT_CHECK(pieces.size() <= 2 && shards > 0, "--all_reduce_spec=", spec, ": '", part,
           "': expected a number of shards after one #, such as psgpu#4");
  DT_CHECK(std::ranges::find(kKnown, pieces[0]) != std::end(kKnown), "--all_reduce_spec=", spec, ": '", pieces[0],
           "': expected one of ", fmt::format("{}", fmt::join(kKnown, ", ")));
  return {.algorithm = pieces[0], .shards = shards, .limit = -1};
}

}  // namespace

std::vector<AllReduceRange> parse_all_reduce_spec(const std::string& spec) {
  std::vector<AllReduceRange> ranges;
  if (spec.empty()) return ranges;
  const std::vector<std::string> parts = split(spec, ':');
  DT_CHECK(parts.size() % 2 == 1, "--all_reduce_spec=", spec,
           ": expected an algorithm, or algorithms with limits between them, such as pscpu:32k:xring");
  for (size_t i = 0; i < parts.size(); i += 2) {
    AllReduceRange& range = ranges.emplace_back(algorithm_of(parts[i], spec));
    if (i + 1 == parts.size()) break;
    range.limit = number_of(parts[i + 1], true);
    DT_CHECK(range.limit > 0 && (i == 0 || range.limit > ranges[i / 2 - 1].limit), "--all_reduce_spec=", spec, ": '",
             parts[i + 1], "': expected a size larger than any before it, such as 32k");
  }
  return ranges;
}

}  // namespace dtrain::cli
