// Checksums first: what a job of thousands of ranks sends is short as long as all is well.
#include "libdtrain/train/agreement.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libdtrain/core/error.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain {
namespace {

using nlohmann::json;

std::string value_of(const RankSettings& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, [](const auto& entry) { return entry.first; });
  return found == settings.end() ? "(not known)" : "'" + found->second + "'";
}

// "rank 1 on a, rank 2 on b and 5 more".
std::string names_of(const Group& group, const std::vector<int>& ranks) {
  constexpr size_t kNamed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kNamed); ++i) text += (i > 0 ? ", " : "") + group.name(ranks[i]);
  return ranks.size() > kNamed ? fmt::format("{} and {} more", text, ranks.size() - kNamed) : text;
}

}  // namespace

void check_equal(Group& group, const RankSettings& mine, const char* what) {
  const std::string text = json(mine).dump(-1, ' ', false, json::error_handler_t::replace);
  const std::vector<std::string> sums =
      group.all_gather(fmt::format("{:08x} {}", crc32c(text.data(), text.size()), text.size()), what);
  if (std::ranges::count(sums, sums[0]) == group.size()) return;

  std::vector<RankSettings> all;
  for (const std::string& one : group.all_gather(text, what)) all.push_back(json::parse(one).get<RankSettings>());
  std::vector<std::string> keys;
  for (const RankSettings& settings : all)
    for (const auto& [key, value] : settings)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  for (const std::string& key : keys) {
    const std::string first = value_of(all[0], key);
    std::string other;
    std::vector<int> alike, different;
    for (int rank = 0; rank < group.size(); ++rank) {
      const std::string value = value_of(all[static_cast<size_t>(rank)], key);
      if (value != first && other.empty()) other = value;
      if (value == first) alike.push_back(rank);
      if (value == other) different.push_back(rank);
    }
    if (different.empty()) continue;
    throw Error(fmt::format("the ranks were not started alike: {} is {} on {}, and {} on {}", key, first,
                            names_of(group, alike), other, names_of(group, different)));
  }
}

}  // namespace dtrain
