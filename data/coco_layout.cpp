#include "data/coco_layout.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "instances_", kAfter = ".json", kRoboflow = "_annotations.coco.json";

bool is_file(const std::string& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

bool is_folder(const std::string& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

std::string joined(const std::string& folder, std::string_view name) { return folder + "/" + std::string(name); }

std::string coco_file(const std::string& folder, const std::string& split) {
  return joined(folder, "annotations/") + std::string(kBefore) + split + std::string(kAfter);
}

}  // namespace

std::vector<std::string> coco_splits(const std::string& folder) {
  std::set<std::string> splits;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(joined(folder, "annotations"), unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > kBefore.size() + kAfter.size() && name.starts_with(kBefore) && name.ends_with(kAfter))
      splits.insert(name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size()));
  }
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (is_file(joined(entry.path().string(), kRoboflow))) splits.insert(entry.path().filename().string());
  if (splits.empty() && is_file(joined(folder, kRoboflow))) splits.insert("train");
  return {splits.begin(), splits.end()};
}

std::string coco_annotations(const std::string& folder, const std::string& split) {
  const std::string own = coco_file(folder, split), beside = joined(folder + "/" + split, kRoboflow);
  if (is_file(own)) return own;
  if (is_file(beside)) return beside;
  const std::string root = joined(folder, kRoboflow);
  return split == "train" && is_file(root) ? root : own;
}

std::string coco_images(const std::string& folder, const std::string& split) {
  const std::string annotations = coco_annotations(folder, split);
  if (annotations != coco_file(folder, split)) return fs::path(annotations).parent_path().string();
  const std::string undated = split.substr(0, split.find_last_not_of("0123456789") + 1);
  for (const std::string& inner : {split, "images/" + split, undated, std::string("images")})
    if (!inner.empty() && is_folder(joined(folder, inner))) return joined(folder, inner);
  return "";
}

}  // namespace dtrain::data
