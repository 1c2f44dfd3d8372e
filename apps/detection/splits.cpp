#include "apps/detection/splits.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "data/coco_layout.h"
#include "dtrain/core/error.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::detection {
namespace {

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<std::string> splits_in(const std::string& folder, const std::string& part) {
  const std::vector<std::string> all = data::coco_splits(folder);
  std::vector<std::string> splits;
  for (const std::string& split : all) {
    const std::string name = lower_case(split);
    const bool trains = part != "train" && name.find("trainval") != name.npos;  // both parts in one file
    if (name.find(part) != name.npos && !trains) splits.push_back(split);
  }
  if (splits.empty() && part == "train" && std::ranges::find(all, "default") != all.end()) return {"default"};
  return splits;
}

}  // namespace

std::vector<std::string> annotated_splits(const std::string& folder, const std::string& part) {
  std::vector<std::string> splits = splits_in(folder, part);
  if (splits.empty()) {
    std::error_code failure;
    if (!is_remote(folder)) std::filesystem::directory_iterator(folder + "/annotations", failure);
    throw Error(Fault::data, fmt::format("{0}/annotations: no file instances_*{1}*.json{2}, and no {0}/*{1}*/"
                                         "_annotations.coco.json",
                                         folder, part, failure ? ": " + failure.message() : ""));
  }
  return splits;
}

bool has_annotated_split(const std::string& folder, const std::string& part) {
  return !splits_in(folder, part).empty();
}

std::string annotations_in(const std::string& folder, const std::string& split) {
  return data::coco_annotations(folder, split);
}

std::string images_in(const std::string& folder, const std::string& split) {
  const std::string found = data::coco_images(folder, split);
  return found.empty() ? folder + "/" + split : found;
}

}  // namespace dtrain::detection
