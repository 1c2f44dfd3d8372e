#include "data/annotations/voc_splits.h"

#include <algorithm>
#include <filesystem>

#include "data/annotations/labelled_image.h"
#include "data/image_tree.h"
#include "data/label_file.h"
#include "dtrain/core/error.h"
#include "dtrain/io/file_system.h"
#include "libdtrain/core/lower_case.h"

namespace dtrain::data::annotations {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

// Sorted names in a folder: subfolders, or files with this ending in any case.
std::vector<std::string> names_in(const fs::path& folder, const char* ending) try {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_left_out(name)) continue;
    if (ending ? lower_case(name).ends_with(ending) && !entry.is_directory() : entry.is_directory())
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              concat(folder.string(), ": cannot be listed: ", error.code().message()));
}

LabelFiles files_in(const std::string& folder, const std::string& inner, const std::string& split) {
  LabelFiles files{.name = split, .where = inner.empty() ? folder : folder + "/" + inner};
  for (const std::string& name : names_in(files.where, ".xml"))
    files.items.push_back(inner.empty() ? name : inner + "/" + name);
  return files;
}

// XML file of a line: the line is the name of an image, or its name and -1, 0 or 1 as in lists of one class.
std::string item_of_line(const std::string& folder, const std::string& line) {
  const auto item_of = [](const std::string& name) { return "Annotations/" + name + ".xml"; };
  const size_t space = line.find_last_of(" \t");
  if (space == line.npos) return item_of(line);
  const std::string flag = line.substr(space + 1);
  const std::string name = line.substr(0, line.find_last_not_of(" \t", space) + 1);
  std::error_code unknown;
  const bool has_flag = (flag == "-1" || flag == "0" || flag == "1") && stays_inside(name) &&
                        !fs::exists(fs::path(folder) / item_of(line), unknown) &&
                        fs::exists(fs::path(folder) / item_of(name), unknown);
  return item_of(has_flag ? name : line);
}

LabelFiles files_of_list(const std::string& folder, const std::string& list, const std::string& split) {
  LabelFiles files{.name = split, .where = list};
  for (const TextLine& line : read_lines(list)) {
    if (!stays_inside(line.text))
      throw Error(Fault::data, concat(list, ": line ", line.number, ": the name leads out of Annotations"));
    files.items.push_back(item_of_line(folder, line.text));
  }
  return files;
}

std::vector<LabelFiles> splits_of_devkit(const std::string& folder) {
  const std::string lists = folder + "/ImageSets/Main/";
  const auto has = [&](const char* name) {
    std::error_code unknown;
    return fs::is_regular_file(lists + name + ".txt", unknown);
  };
  std::vector<LabelFiles> splits;
  if (has("train")) splits.push_back(files_of_list(folder, lists + "train.txt", "train"));
  if (has("val")) splits.push_back(files_of_list(folder, lists + "val.txt", "val"));
  if (splits.empty() && has("trainval")) splits.push_back(files_of_list(folder, lists + "trainval.txt", "train"));
  if (has("test")) splits.push_back(files_of_list(folder, lists + "test.txt", "test"));
  if (splits.empty()) splits.push_back(files_in(folder, "Annotations", "train"));
  return splits;
}

// Folders of splits, or XML files in the folder itself.
std::vector<LabelFiles> splits_beside_images(const std::string& folder) {
  std::vector<LabelFiles> splits;
  for (const std::string& name : names_in(folder, nullptr)) {
    const std::string split = split_of_folder(name);
    if (split.empty()) continue;
    LabelFiles files = files_in(folder, name, split == "validation" ? "val" : split);
    if (!files.items.empty()) splits.push_back(std::move(files));
  }
  std::ranges::sort(splits, [](const LabelFiles& a, const LabelFiles& b) {
    const auto rank = [](const std::string& name) { return name == "train" ? 0 : name == "val" ? 1 : 2; };
    return rank(a.name) < rank(b.name);
  });
  if (LabelFiles files = files_in(folder, "", "train"); splits.empty() && !files.items.empty())
    splits.push_back(std::move(files));
  return splits;
}

}  // namespace

std::vector<LabelFiles> voc_splits(const std::string& folder) {
  if (is_folder(fs::path(folder) / "Annotations")) return splits_of_devkit(folder);
  std::vector<LabelFiles> splits = splits_beside_images(folder);
  if (!splits.empty()) return splits;
  for (const char* inner : {"", "VOCdevkit/"})
    if (const fs::path parent = fs::path(folder) / inner; is_folder(parent))
      for (const std::string& name : names_in(parent, nullptr))
        if (is_folder(parent / name / "Annotations"))
          throw Error(Fault::data, concat(folder, ": no folder Annotations in it; give ", (parent / name).string()));
  throw Error(Fault::data, concat(folder,
                                  ": no VOC data set: expected Annotations/*.xml with JPEGImages, or XML files "
                                  "beside images in it or in train, valid and test"));
}

}  // namespace dtrain::data::annotations
