#include "data/shard_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <regex>

#include <fmt/format.h>

#include "data/shard_manifest.h"
#include "dtrain/core/error.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kListedGaps = 8;  // keeps messages to one line

// Shard files of one name and total.
struct Family {
  std::string folder, split;
  std::string total_digits;  // digits after "-of-"
  std::map<uint64_t, std::string> names;

  uint64_t total() const { return std::stoull(total_digits); }
  // Number of the first shard: 1 if the names run from 1 to the total.
  uint64_t first() const { return !names.contains(0) && names.contains(total()) ? 1 : 0; }
  std::string name_of(uint64_t number) const {
    return fmt::format("{}-{:0{}}-of-{}", split, number, total_digits.size(), total_digits);
  }
};

void add_file(Family& family, const std::string& name, const std::string& number, const std::string& total) {
  if (family.names.empty()) family.total_digits = total;
  if (total != family.total_digits)
    throw Error(Fault::data, concat(family.folder, ": shards of two data sets, ", family.names.begin()->second, " and ",
                                    name, "; keep one of them in this directory"));
  const auto [other, added] = family.names.emplace(std::stoull(number), name);
  if (!added)
    throw Error(Fault::data, concat(family.folder, ": two files for one shard, ", other->second, " and ", name));
}

Family family_in(const std::string& folder, const std::string& split) {
  static const std::regex kNumbers("-(\\d{1,9})-of-(\\d{1,9}).*");
  Family family{folder, split, {}, {}};
  for (const std::string& name : names_in_folder(folder)) {
    if (is_temporary_name(name) || !name.starts_with(split)) continue;
    const std::string rest = name.substr(split.size());
    if (std::smatch match; std::regex_match(rest, match, kNumbers)) add_file(family, name, match[1], match[2]);
  }
  return family;
}

// "train-00003-of-01024, train-00010-of-01024 to train-00012-of-01024"
std::string gaps_of(const Family& family) {
  std::vector<std::string> gaps;
  uint64_t next = family.first();
  const uint64_t end = next + family.total();
  const auto gap_before = [&](uint64_t number) {
    if (number == next + 1) gaps.push_back(family.name_of(next));
    if (number > next + 1) gaps.push_back(concat(family.name_of(next), " to ", family.name_of(number - 1)));
    next = number + 1;
  };
  for (const auto& [number, name] : family.names) gap_before(number);
  gap_before(end);
  std::string text;
  for (size_t i = 0; i < std::min(gaps.size(), kListedGaps); ++i) text += (i > 0 ? ", " : "") + gaps[i];
  return gaps.size() > kListedGaps ? concat(text, " and more") : text;
}

void require_complete(const Family& family) {
  const uint64_t first = family.first(), total = family.total(), found = family.names.size();
  if (const auto& [number, name] = *family.names.rbegin(); number >= first + total)
    throw Error(Fault::data, concat(family.folder, ": ", name, " is one shard too many"));
  if (found == total) return;
  const std::string gaps = gaps_of(family);
  throw Error(Fault::data,
              total - found == 1
                  ? concat(family.folder, ": ", gaps, " is missing (", found, " of ", total, " shards found)")
                  : concat(family.folder, ": ", total - found, " of ", total, " shards are missing: ", gaps));
}

}  // namespace

std::vector<std::string> shards_in(const std::string& folder, const std::string& split) {
  const Family family = family_in(folder, split);
  if (family.names.empty()) return {};
  require_complete(family);
  std::vector<std::string> paths;
  for (const auto& [number, name] : family.names) paths.push_back((fs::path(folder) / name).string());
  return paths;
}

std::vector<std::string> shard_folders(const std::string& directory, const std::string& split) {
  std::vector<std::string> folders{directory};
  for (const std::string& name : {split, std::string(split == "validation" ? "val" : "")})
    if (!name.empty() && folder_exists((fs::path(directory) / name).string()))
      folders.push_back((fs::path(directory) / name).string());
  return folders;
}

bool has_shards(const std::string& directory, const std::string& split) {
  return std::ranges::any_of(shard_folders(directory, split),
                             [&](const std::string& folder) { return !family_in(folder, split).names.empty(); });
}

std::vector<std::string> find_shards(const std::string& directory, const std::string& split) {
  std::vector<std::string> paths, holders;
  for (const std::string& folder : shard_folders(directory, split)) {
    require_all_in_place(folder);
    const std::vector<std::string> found = shards_in(folder, split);
    if (found.empty()) continue;
    holders.push_back(folder);
    paths = found;
  }
  if (holders.size() > 1)
    throw Error(Fault::data, concat(holders[0], " and ", holders[1], " both hold ", split,
                                    "-*-of-* files; keep the files of one data set"));
  if (paths.empty())
    throw Error(Fault::data, concat(directory, ": no ", split, "-*-of-* files in it or in its folder ", split,
                                    "; make them with dtrain-data"));
  return paths;
}

}  // namespace dtrain::data
