#include "apps/dataset/annotated_splits.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <vector>

#include "apps/cli/messages.h"
#include "apps/dataset/writing.h"
#include "dtrain/core/error.h"
#include "dtrain/io/file_system.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// Captured groups of the file names in annotations/ that match `name`, sorted.
std::vector<std::string> annotations_like(const std::string& input, const std::string& name) try {
  const std::regex pattern(name);
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(fs::path(input) / "annotations")) {
    const std::string file = entry.path().filename().string();
    if (std::smatch match; std::regex_match(file, match, pattern)) found.push_back(match[1]);
  }
  std::sort(found.begin(), found.end());
  return found;
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              concat(input, "/annotations: cannot be listed: ", error.code().message()));
}

// Years of annotations/instances_SPLIT<year>.json. valminusminival2014 is training data, not a split of a year.
std::vector<std::string> years_of(const std::string& input, const std::string& split) {
  return annotations_like(input, "instances_" + split + "(?!minus)(.*)\\.json");
}

}  // namespace

std::optional<AnnotatedSplit> find_split(const std::string& input, const std::string& split, const std::string& year) {
  std::vector<std::string> years = years_of(input, split);
  if (!year.empty()) std::erase_if(years, [&](const std::string& found) { return found != year; });
  if (years.empty()) return {};
  if (years.size() > 1)
    throw Error(Fault::data, concat(input, "/annotations: instances_", split, years[0], ".json and instances_", split,
                                    years[1], ".json; choose one by --year"));
  const std::string name = split + years.front();
  AnnotatedSplit files{concat(input, "/annotations/instances_", name, ".json"),
                       existing_folder(input, {name.c_str(), ("images/" + name).c_str(), split.c_str()})};
  if (files.images.empty())
    throw Error(Fault::data, concat(files.annotations, ": no folder ", input, "/", name, " with its images"));
  return files;
}

void report_others(const std::string& input, const std::optional<AnnotatedSplit>& train,
                   const std::optional<AnnotatedSplit>& validation) {
  std::string others;
  for (const std::string& file : annotations_like(input, "(instances_.*\\.json)")) {
    const std::string path = concat(input, "/annotations/", file);
    if ((train && path == train->annotations) || (validation && path == validation->annotations)) continue;
    others += (others.empty() ? "" : ", ") + file;
  }
  if (!others.empty()) cli::print_message("note", concat(input, "/annotations: not converted: ", others));
}

}  // namespace dtrain::dataset
