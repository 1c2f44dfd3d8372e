// Compares checksums first: messages stay short while all ranks agree.
#include "libdtrain/train/agreement.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain {
namespace {

using nlohmann::json;

// nullopt if the rank lacks the key.
std::optional<std::string> value_of(const RankSettings& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, [](const auto& entry) { return entry.first; });
  return found == settings.end() ? std::nullopt : std::optional(found->second);
}

std::string quoted(const std::optional<std::string>& value) { return value ? "'" + *value + "'" : "(not known)"; }

// "rank 1 on a, rank 2 on b and 5 more".
std::string names_of(const Group& group, const std::vector<int>& ranks) {
  constexpr size_t kNamed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kNamed); ++i) text += (i > 0 ? ", " : "") + group.name(ranks[i]);
  return ranks.size() > kNamed ? fmt::format("{} and {} more", text, ranks.size() - kNamed) : text;
}

}  // namespace

std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  for (;;) {
    std::string line_a, line_b;
    const bool more_a = static_cast<bool>(std::getline(lines_a, line_a));
    const bool more_b = static_cast<bool>(std::getline(lines_b, line_b));
    if (more_a != more_b || line_a != line_b || !more_a)
      return {more_a ? line_a : "nothing", more_b ? line_b : "nothing"};
  }
}

void check_equal(Group& group, const RankSettings& mine, const char* what) {
  const std::string text = json(mine).dump(-1, ' ', false, json::error_handler_t::replace);
  const std::vector<std::string> sums =
      group.all_gather(fmt::format("{:08x} {}", crc32c(text.data(), text.size()), text.size()), what);
  if (std::ranges::count(sums, sums[0]) == group.size()) return;

  std::vector<RankSettings> all;
  read_texts(group, text, what, [&](int, const std::string& one) {
    all.push_back(parse_json<json>(one, what, Fault::communication).get<RankSettings>());
  });
  std::vector<std::string> keys;
  for (const RankSettings& settings : all)
    for (const auto& [key, value] : settings)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  for (const std::string& key : keys) {
    std::optional<std::string> first = value_of(all[0], key), other;
    std::vector<int> alike, different;
    for (int rank = 0; rank < group.size(); ++rank) {
      const std::optional<std::string> value = value_of(all[static_cast<size_t>(rank)], key);
      if (value != first && different.empty()) other = value;
      if (value == first) alike.push_back(rank);
      if (value != first && value == other) different.push_back(rank);
    }
    if (different.empty()) continue;
    if (first && other && (first->find('\n') != std::string::npos || other->find('\n') != std::string::npos))
      std::tie(first, other) = first_difference(*first, *other);
    throw Error(fmt::format("the ranks have different settings: {} is {} on {}, and {} on {}", key, quoted(first),
                            names_of(group, alike), quoted(other), names_of(group, different)));
  }
}

}  // namespace dtrain
