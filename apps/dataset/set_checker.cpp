#include "apps/dataset/set_checker.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "data/shard_files.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::dataset {
namespace {

std::string advice(const std::string& folder) {
  const std::string path = folder + "/" + data::kShardManifest;
  return concat(" (", path, "); make the data set again or, if it was changed on purpose, delete ", path);
}

bool has_split(const data::ShardManifest& manifest, const std::string& split) {
  return std::any_of(manifest.begin(), manifest.end(),
                     [&](const auto& entry) { return data::split_of_shard(entry.first) == split; });
}

}  // namespace

SetChecker::SetChecker(const DataFiles& files) {
  for (const std::string& path : files.paths) manifests_[directory_of(path)] = {};
  for (auto& [folder, manifest] : manifests_) {
    try {
      data::require_all_in_place(folder);
      manifest = data::read_shard_manifest(folder).value_or(data::ShardManifest());
    } catch (const Error& error) {
      faults_.emplace_back(error.what());
    }
  }
  for (const std::string& folder : files.folders) {
    find_missing(folder);
    find_gaps(folder, files.paths);
  }
}

void SetChecker::check(const std::string& path) const {
  const std::string folder = directory_of(path), name = std::filesystem::path(path).filename();
  const data::ShardManifest& manifest = manifests_.at(folder);
  const auto listed = manifest.find(name);
  if (listed == manifest.end()) {
    if (has_split(manifest, data::split_of_shard(name)))
      throw Error(Fault::data, concat(path, ": does not belong to the set of shards", advice(folder)));
    return;
  }
  const InputFile file(path);
  const data::ShardFacts found{file.size(), crc32c_of(file)};
  if (found != listed->second)
    throw Error(Fault::data, concat(path, ": is not the shard that was written with the others, but one of ",
                                    to_text(found), ", expected ", to_text(listed->second), advice(folder)));
}

// A completely removed split is no fault.
void SetChecker::find_missing(const std::string& folder) {
  std::map<std::string, std::vector<std::string>> missing;  // by split
  std::set<std::string> present;                            // splits
  for (const auto& [name, facts] : manifests_.at(folder)) {
    const std::string path = folder + "/" + name, split = data::split_of_shard(name);
    if (file_exists(path))
      present.insert(split);
    else
      missing[split].push_back(path);
  }
  for (const std::string& split : present)
    for (const std::string& path : missing[split]) faults_.push_back(concat(path, ": is missing", advice(folder)));
}

// By file names, without a manifest.
void SetChecker::find_gaps(const std::string& folder, const std::vector<std::string>& paths) {
  std::set<std::string> splits;
  for (const std::string& path : paths)
    if (directory_of(path) == folder)
      splits.insert(data::split_of_shard(std::filesystem::path(path).filename().string()));
  for (const std::string& split : splits) try {
      if (!split.empty() && !has_split(manifests_.at(folder), split)) data::shards_in(folder, split);
    } catch (const Error& error) {
      faults_.emplace_back(error.what());
    }
}

}  // namespace dtrain::dataset
