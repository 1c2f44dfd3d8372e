#include "apps/detection/splits.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "dtrain/core/error.h"

namespace dtrain::detection {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "instances_", kAfter = ".json";

std::vector<std::string> splits_in(const std::string& folder, const std::string& part, std::error_code& failure) {
  std::vector<std::string> splits;
  for (const auto& entry : fs::directory_iterator(folder + "/annotations", failure)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) continue;
    const std::string split = name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
    if (split.find(part) != split.npos) splits.push_back(split);
  }
  std::ranges::sort(splits);
  return splits;
}

}  // namespace

std::vector<std::string> annotated_splits(const std::string& folder, const std::string& part) {
  std::error_code failure;
  std::vector<std::string> splits = splits_in(folder, part, failure);
  if (splits.empty())
    throw Error(Fault::data, fmt::format("{}/annotations: no file instances_*{}*.json{}", folder, part,
                                         failure ? ": " + failure.message() : ""));
  return splits;
}

bool has_annotated_split(const std::string& folder, const std::string& part) {
  std::error_code failure;
  return !splits_in(folder, part, failure).empty();
}

std::string annotations_in(const std::string& folder, const std::string& split) {
  return fmt::format("{}/annotations/{}{}{}", folder, kBefore, split, kAfter);
}

}  // namespace dtrain::detection
