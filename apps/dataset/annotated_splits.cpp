#include "apps/dataset/annotated_splits.h"

#include <algorithm>
#include <filesystem>
#include <regex>

#include "apps/cli/messages.h"
#include "data/coco_layout.h"
#include "dtrain/core/error.h"
#include "dtrain/io/file_system.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;
  std::regex pattern;  // captures the year
};

// valminusminival2014 is training data, not a split of a year. CVAT names the only subset of a task "default".
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"train", std::regex("(?:train|training|default)((?!minus|ing).*)", std::regex::icase)},
      {"val", std::regex("(?:val|valid|validation)((?!minus|id|ation).*)", std::regex::icase)},
      {"test", std::regex("(?:test|testing)((?!minus|ing|_|-).*)", std::regex::icase)}};
  return all;
}

void require_listable(const std::string& folder) {
  std::error_code failure;
  const fs::directory_iterator listed(folder, failure);
  if (failure)
    throw Error(fault_of_errno(failure.value(), Fault::data), folder + ": cannot be listed: " + failure.message());
}

AnnotatedSplit files_of(const std::string& input, const char* kind, const std::string& split) {
  AnnotatedSplit files{kind, data::coco_annotations(input, split), data::coco_images(input, split)};
  if (files.images.empty())
    throw Error(Fault::data, concat(files.annotations, ": no folder ", input, "/", split, " or ", input, "/images/",
                                    split, " with its images"));
  return files;
}

}  // namespace

std::vector<AnnotatedSplit> find_splits(const std::string& input, const std::string& year) {
  std::vector<std::string> others = data::coco_splits(input);
  if (others.empty()) require_listable(input + "/annotations");
  std::vector<AnnotatedSplit> splits;
  for (const Kind& kind : kinds()) {
    std::vector<std::string> found;
    for (const std::string& split : others)
      if (std::smatch match; std::regex_match(split, match, kind.pattern) && (year.empty() || match[1] == year))
        found.push_back(split);
    if (found.size() > 1)
      throw Error(Fault::data, concat(input, "/annotations: instances_", found[0], ".json and instances_", found[1],
                                      ".json; choose one by --year"));
    if (found.empty()) continue;
    splits.push_back(files_of(input, kind.name, found.front()));
    std::erase(others, found.front());
  }
  if (splits.empty())
    throw Error(Fault::data, concat(input, "/annotations: neither instances_train", year, "*.json nor instances_val",
                                    year, "*.json in it, nor train/_annotations.coco.json beside it"));
  std::string rest;
  for (const std::string& split : others)
    rest += (rest.empty() ? "" : ", ") + fs::path(data::coco_annotations(input, split)).filename().string();
  if (!rest.empty()) cli::print_message("note", concat(input, "/annotations: not converted: ", rest));
  return splits;
}

}  // namespace dtrain::dataset
