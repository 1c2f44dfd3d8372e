#include "data/image_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/file_source.h"
#include "data/image_index.h"
#include "data/image_tree.h"
#include "data/shard_files.h"
#include "dtrain/core/error.h"
#include "libdtrain/core/lower_case.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kListed = 8;  // keeps messages to one line

std::string first_of(const std::vector<std::string>& names) {
  const std::vector<std::string> few(names.begin(),
                                     names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kListed)));
  return fmt::format("{}{}", fmt::join(few, ", "), names.size() > kListed ? " and more" : "");
}

// Labels by class.
std::map<std::string, int32_t, std::less<>> labels_of(const std::vector<std::string>& classes) {
  std::map<std::string, int32_t, std::less<>> labels;
  for (const std::string& name : classes) labels.emplace(name, static_cast<int32_t>(labels.size()));
  return labels;
}

void require_equal_classes(const std::vector<std::string>& classes, const std::string& training,
                           const std::vector<std::string>& found, const std::string& root) {
  std::vector<std::string> unknown, missing;
  std::ranges::set_difference(found, classes, std::back_inserter(unknown));
  std::ranges::set_difference(classes, found, std::back_inserter(missing));
  if (!unknown.empty())
    throw Error(Fault::data,
                fmt::format("{}: class folders that {} does not have: {}", root, training, first_of(unknown)));
  if (!missing.empty())
    throw Error(Fault::data,
                fmt::format("{}: no class folders {}, which {} has; make empty folders for classes without "
                            "validation images",
                            root, first_of(missing), training));
}

// Of YOLO's layout, whose folders are no classes.
void refuse_detection_data(const std::vector<std::string>& classes, const std::string& root) {
  if (classes == std::vector<std::string>{"images", "labels"})
    throw Error(Fault::data, root + ": its folders images and labels are of detection data (YOLO), not of two classes");
}

// Number of files by extension, the most frequent first: "2 .txt, 1 without extension".
std::string by_extension(const std::map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, uint64_t>::second);
  std::vector<std::string> parts;
  for (const auto& [extension, count] : sorted)
    parts.push_back(fmt::format("{} {}", count, extension.empty() ? "without extension" : extension));
  return first_of(parts);
}

// Files beside the class folders.
std::vector<std::string> loose_files(const std::string& root, uint64_t& left_out) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (fs::directory_iterator entry(root, unreadable), end; !unreadable && entry != end; entry.increment(unreadable)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (is_left_out(name))
      ++left_out;
    else if (!entry->is_directory(unknown))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

class FolderCounts {
 public:
  explicit FolderCounts(const std::vector<std::string>& classes) : images_(classes.size()) {}

  void add(const IndexedFile& file, int32_t label) {
    if (file.content == FileContent::image)
      ++images_[static_cast<size_t>(label)];
    else
      ++others_[lower_case(fs::path(file.name).extension().string())];
  }

  std::vector<std::string> notices(const std::string& root, const std::vector<std::string>& classes,
                                   const ImageIndex& index) const {
    uint64_t images = 0, others = 0, left_out = index.left_out;
    for (const uint64_t count : images_) images += count;
    for (const auto& [extension, count] : others_) others += count;
    const std::vector<std::string> loose = loose_files(root, left_out);
    std::vector<std::string> lines{fmt::format("{}: {} images in {} class folders", root, images, classes.size())};
    if (others + left_out > 0)
      lines.push_back(fmt::format("{}: left out {} files that are no images{}, and {} hidden files and folders", root,
                                  others, others > 0 ? fmt::format(" ({})", by_extension(others_)) : "", left_out));
    if (!loose.empty())
      lines.push_back(
          fmt::format("{}: left out {} files outside of class folders: {}", root, loose.size(), first_of(loose)));
    std::vector<std::string> empty;
    for (size_t i = 0; i < classes.size(); ++i)
      if (images_[i] == 0) empty.push_back(classes[i]);
    if (!empty.empty())
      lines.push_back(fmt::format("{}: {} classes without images: {}", root, empty.size(), first_of(empty)));
    return lines;
  }

 private:
  std::vector<uint64_t> images_;            // by label
  std::map<std::string, uint64_t> others_;  // other files by extension
};

}  // namespace

std::string split_folder(const std::string& directory, bool training) {
  const std::vector<std::string> names = class_folders(directory);
  const auto of = [&](const char* split) {
    std::vector<std::string> found;
    std::ranges::copy_if(names, std::back_inserter(found),
                         [&](const std::string& name) { return split_of_folder(name) == split; });
    if (found.size() > 1)
      throw Error(Fault::data,
                  concat(directory, ": two folders of one split, ", found[0], " and ", found[1], "; keep one"));
    return found.empty() ? "" : (fs::path(directory) / found[0]).string();
  };
  if (training) return of("train");
  const std::string validation = of("validation");
  return validation.empty() ? of("test") : validation;
}

bool has_image_folders(const std::string& directory) {
  try {
    if (has_shards(directory, "train") || has_shards(directory, "validation")) return false;
    return std::ranges::any_of(class_folders(directory), [&](const std::string& name) {
      return !split_of_folder(name).empty() && !class_folders((fs::path(directory) / name).string()).empty();
    });
  } catch (const Error& error) {  // opening the data reports other errors
    if (error.fault() == Fault::resource) throw;
    return false;
  }
}

std::vector<std::string> classes_of_folders(const std::string& directory) {
  const std::string training = split_folder(directory, true);
  const std::string root = training.empty() ? split_folder(directory, false) : training;
  std::vector<std::string> classes = class_folders(root);
  refuse_detection_data(classes, root);
  return classes;
}

int64_t image_folder_outputs(const std::string& directory, int64_t label_offset) {
  return static_cast<int64_t>(classes_of_folders(directory).size()) + label_offset;
}

std::unique_ptr<const ImageSource> open_image_folder(const FolderOptions& options) {
  const std::string root = split_folder(options.directory, options.training);
  if (root.empty())
    throw Error(Fault::data, concat(options.directory, ": no folder ",
                                    options.training ? "train" : "validation (or val, valid, test)", " in it"));
  const std::vector<std::string> classes = classes_of_folders(options.directory), found = class_folders(root);
  if (found.empty()) throw Error(Fault::data, root + ": no class folders in it; expected " + root + "/CLASS/IMAGE");
  if (found != classes) require_equal_classes(classes, split_folder(options.directory, true), found, root);
  ImageIndex index = index_images(root, classes, options.cache);
  const auto labels = labels_of(classes);
  FolderCounts counts(classes);
  std::vector<std::string> faults;
  for (IndexFault& fault : index.faults) faults.push_back(std::move(fault.reason));
  auto source = std::make_unique<FileSource>(root, "image folder", root, classes.size(), std::move(faults));
  for (const IndexedFile& file : index.files) {
    const int32_t label = labels.find(std::string_view(file.name).substr(0, file.name.find('/')))->second;
    counts.add(file, label);
    if (file.content == FileContent::image) source->add(file, std::array{int64_t{label}});
  }
  if (options.notice)
    for (const std::string& line : counts.notices(root, classes, index)) options.notice(line);
  if (source->size() == 0 && source->faults().empty())
    throw Error(Fault::data, root + ": no images in its class folders");
  return source;
}

std::shared_ptr<Dataset> open_image_folder(const FolderOptions& options, int64_t classes, int64_t label_offset,
                                           PreprocessorFactory preprocessors, bool multi_label) {
  const int64_t needed = image_folder_outputs(options.directory, label_offset);
  if (classes == 0) classes = needed;
  if (label_offset < 0 || needed > classes)
    throw Error(
        Fault::data,
        fmt::format("{}: {} class folders, labelled from 0, and label offset {} do not fit a model of {} classes; "
                    "leave --num_classes and --label_offset out, or give at least {} classes",
                    options.directory, needed - label_offset, label_offset, classes, needed));
  return std::make_shared<ImageSourceDataset>(open_image_folder(options), classes, label_offset, options.cache,
                                              std::move(preprocessors), multi_label);
}

}  // namespace dtrain::data
