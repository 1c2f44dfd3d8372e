#include "data/coco_layout.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "dtrain/core/error.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "instances_", kAfter = ".json", kRoboflow = "_annotations.coco.json";

// None for a folder that is not there or cannot be listed. Throws Error(Fault::resource) if a server does not answer.
std::vector<std::string> names_in(const std::string& folder) try {
  return names_in_folder(folder);
} catch (const Error& error) {
  if (error.fault() == Fault::resource && is_remote(folder)) throw;
  return {};
}

std::string joined(const std::string& folder, std::string_view name) { return folder + "/" + std::string(name); }

std::string coco_file(const std::string& folder, const std::string& split) {
  return joined(folder, "annotations/") + std::string(kBefore) + split + std::string(kAfter);
}

}  // namespace

std::vector<std::string> coco_splits(const std::string& folder) {
  std::set<std::string> splits;
  for (const std::string& name : names_in(joined(folder, "annotations")))
    if (name.size() > kBefore.size() + kAfter.size() && name.starts_with(kBefore) && name.ends_with(kAfter))
      splits.insert(name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size()));
  for (const std::string& name : names_in(folder))
    if (file_exists(joined(joined(folder, name), kRoboflow))) splits.insert(name);
  if (splits.empty() && file_exists(joined(folder, kRoboflow))) splits.insert("train");
  return {splits.begin(), splits.end()};
}

std::string coco_annotations(const std::string& folder, const std::string& split) {
  const std::string own = coco_file(folder, split), beside = joined(folder + "/" + split, kRoboflow);
  if (file_exists(own)) return own;
  if (file_exists(beside)) return beside;
  const std::string root = joined(folder, kRoboflow);
  return split == "train" && file_exists(root) ? root : own;
}

std::string coco_images(const std::string& folder, const std::string& split) {
  const std::string annotations = coco_annotations(folder, split);
  if (annotations != coco_file(folder, split)) return fs::path(annotations).parent_path().string();
  const std::string undated = split.substr(0, split.find_last_not_of("0123456789") + 1);
  for (const std::string& inner : {split, "images/" + split, undated, std::string("images")})
    if (!inner.empty() && folder_exists(joined(folder, inner))) return joined(folder, inner);
  return "";
}

}  // namespace dtrain::data
