#include "data/image_list.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/file_source.h"
#include "data/image_folder.h"
#include "data/image_index.h"
#include "data/image_tree.h"
#include "data/shard_files.h"
#include "data/web_dataset.h"
#include "dtrain/core/error.h"
#include "dtrain/data/class_names.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/core/lower_case.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostLabel = int64_t{1} << 20;

bool is_list_name(const std::string& name) {
  const std::string lower = lower_case(name);
  return lower.ends_with(".csv") || lower.ends_with(".tsv");
}

bool is_list_file(const std::string& data) {
  std::error_code unknown;
  return is_list_name(data) && !fs::is_directory(data, unknown);
}

std::string folder_of(const std::string& list) {
  const std::string folder = fs::path(list).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Lists of a directory whose names tell a split.
std::vector<std::string> lists_in(const std::string& directory, const std::string& split) {
  std::vector<std::string> found;
  for (const std::string& name : names_in_folder(directory))
    if (is_list_name(name) && !is_left_out(name) && split_of_folder(fs::path(name).stem().string()) == split)
      found.push_back((fs::path(directory) / name).string());
  return found;
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc{} && end == text.data() + text.size() && number >= 0 ? std::optional(number) : std::nullopt;
}

// Labels by their texts.
class LabelNumbers {
 public:
  explicit LabelNumbers(const ListLabels& labels) : labels_(labels) {
    for (size_t i = 0; i < labels.names.size(); ++i)
      if (!labels.names[i].empty()) by_name_.emplace(labels.names[i], static_cast<int64_t>(i));
  }
  std::optional<int64_t> find(std::string_view text) const {
    if (const auto found = by_name_.find(text); found != by_name_.end()) return found->second;
    const std::optional<int64_t> number = labels_.numbers ? number_of(text) : std::nullopt;
    if (!number || *number >= labels_.count) return {};
    const bool is_named = labels_.names.empty() || !labels_.names[static_cast<size_t>(*number)].empty();
    return is_named ? number : std::nullopt;
  }

 private:
  const ListLabels& labels_;
  std::unordered_map<std::string_view, int64_t> by_name_;
};

// One more than the largest label; nothing if a label is no number.
std::optional<int64_t> count_of_numbers(const ImageList& list) {
  int64_t count = 0;
  for (const std::string& label : list.labels) {
    const std::optional<int64_t> number = number_of(label);
    if (!number) return {};
    if (*number > kMostLabel)
      throw Error(Fault::data, fmt::format("{}: label {}, expected at most {}; give names of classes, or numbers that "
                                           "count from 0",
                                           list.path, *number, kMostLabel));
    count = std::max(count, *number + 1);
  }
  return count;
}

ListLabels labels_of(const ImageList& list, const std::string& other) {
  ListLabels labels{.several = list.several, .list = list.path};
  if (const ClassNames names = read_class_names(folder_of(list.path)); !names.empty()) {
    labels.names.resize(static_cast<size_t>(names.rbegin()->first) + 1);
    for (const auto& [label, name] : names) labels.names[static_cast<size_t>(label)] = name;
    labels.numbers = true;
  } else if (const std::optional<int64_t> count = count_of_numbers(list)) {
    labels.numbers = true;
    const std::optional<int64_t> others = other.empty() ? std::nullopt : count_of_numbers(read_image_list(other));
    labels.count = std::max(*count, others.value_or(0));
    return labels;
  } else {
    labels.names = list.labels;
    std::ranges::sort(labels.names);
  }
  labels.count = static_cast<int64_t>(labels.names.size());
  return labels;
}

// Numbers the labels of a list, and leaves out images that do not have as many labels as they should.
class LabelledList {
 public:
  LabelledList(const ListOptions& options, ImageList&& list, const ListLabels& labels)
      : options_(options), list_(std::move(list)), labels_(labels) {
    const LabelNumbers numbers(labels_);
    for (const std::string& text : list_.labels) numbers_.push_back(numbers.find(text));
    std::erase_if(list_.images, [&](const ListedImage& image) {
      const std::string reason = fault_of(image);
      if (!reason.empty()) add_fault(image.line, reason);
      return !reason.empty();
    });
  }

  std::unique_ptr<FileSource> open() {
    ImageIndex index = index_listed(folder_of(list_.path), names_, list_.path, options_.cache);
    add_index_faults(index);
    std::unordered_map<std::string_view, const IndexedFile*> files;
    for (const IndexedFile& file : index.files)
      if (file.content == FileContent::image) files.emplace(file.name, &file);
    std::ranges::sort(faults_, {}, &std::pair<uint64_t, std::string>::first);
    std::vector<std::string> faults = std::move(list_.faults);
    for (auto& [line, fault] : faults_) faults.push_back(std::move(fault));
    auto source = std::make_unique<FileSource>(folder_of(list_.path), "list of images", list_.path,
                                               static_cast<size_t>(labels_.count), std::move(faults));
    for (const ListedImage& image : list_.images)
      if (const auto file = files.find(image.name); file != files.end()) {
        const std::vector<int64_t> labels = labels_of(image);
        source->add(*file->second, labels);
        count(labels);
      }
    return source;
  }

  std::vector<std::string> notices(uint64_t images) const {
    std::vector<std::string> lines;
    if (!list_.columns.empty()) lines.push_back(fmt::format("{}: {}", list_.path, list_.columns));
    const auto empty = static_cast<uint64_t>(std::ranges::count(images_, 0u));
    lines.push_back(
        options_.multi_label
            ? fmt::format("{}: {} images with {} labels of {} classes", list_.path, images, labelled_, images_.size())
            : fmt::format("{}: {} images in {} classes", list_.path, images, images_.size()));
    if (options_.training && empty > 0)
      lines.push_back(fmt::format("{}: {} classes without images", list_.path, empty));
    if (repeated_ > 0)
      lines.push_back(fmt::format("{}: {} images are listed again with the same labels", list_.path, repeated_));
    return lines;
  }

 private:
  void add_fault(uint64_t line, const std::string& reason) {
    faults_.emplace_back(line, fmt::format("{}:{}: {}", list_.path, line, reason));
  }

  std::vector<int64_t> labels_of(const ListedImage& image) const {
    std::vector<int64_t> labels;
    for (const uint32_t label : image.labels) labels.push_back(*numbers_[label]);
    std::ranges::sort(labels);
    labels.erase(std::ranges::unique(labels).begin(), labels.end());  // a name and its number
    return labels;
  }

  // Reason why the image cannot be used, else "".
  std::string fault_of(const ListedImage& image) {
    for (const uint32_t label : image.labels)
      if (!numbers_[label]) return unknown_label(list_.labels[label]);
    const std::vector<int64_t> labels = labels_of(image);
    if (!options_.multi_label && labels.empty()) return "no label";
    if (!options_.multi_label && labels.size() > 1)
      throw Error(Fault::data, fmt::format("{}:{}: {} labels, expected one; train with --loss=bce for several",
                                           list_.path, image.line, labels.size()));
    const auto [before, is_new] = lines_.try_emplace(image.name, image.line, image.labels);
    if (is_new) {
      names_.push_back(image.name);
    } else if (before->second.second != image.labels) {
      return fmt::format("{} has other labels in line {}; put all its labels into one row", image.name,
                         before->second.first);
    } else {
      ++repeated_;
    }
    return "";
  }

  std::string unknown_label(const std::string& label) const {
    if (list_.path == labels_.list)
      return fmt::format("label '{}' is not in {}/{}", label, folder_of(list_.path), kClassNamesFile);
    return fmt::format("label '{}' is not one of {}", label,
                       labels_.names.empty() ? fmt::format("the numbers below {}", labels_.count)
                                             : fmt::format("the {} classes of {}", labels_.count, labels_.list));
  }

  void add_index_faults(const ImageIndex& index) {
    for (const IndexFault& fault : index.faults) add_fault(lines_.at(fault.name).first, fault.reason);
    for (const IndexedFile& file : index.files)
      if (file.content != FileContent::image)
        add_fault(lines_.at(file.name).first,
                  path_below(folder_of(list_.path), file.name) + ": is not a JPEG, PNG, WebP, GIF, BMP or TIFF image");
  }

  void count(const std::vector<int64_t>& labels) {
    if (images_.empty()) images_.resize(static_cast<size_t>(labels_.count));
    for (const int64_t label : labels) ++images_[static_cast<size_t>(label)];
    labelled_ += labels.size();
  }

  const ListOptions& options_;
  ImageList list_;
  const ListLabels& labels_;
  std::vector<std::optional<int64_t>> numbers_;                                        // by ImageList::labels
  std::vector<std::string> names_;                                                     // different files
  std::unordered_map<std::string, std::pair<uint64_t, std::vector<uint32_t>>> lines_;  // first line and labels by file
  std::vector<std::pair<uint64_t, std::string>> faults_;                               // by line
  std::vector<uint64_t> images_;                                                       // by label
  uint64_t labelled_ = 0, repeated_ = 0;
};

}  // namespace

bool has_image_lists(const std::string& data) {
  if (data.empty()) return false;
  if (is_list_file(data)) return true;
  if (is_remote(data)) return false;
  try {
    if (has_shards(data, "train") || has_shards(data, "validation") || has_image_folders(data) || has_tars(data))
      return false;
    return !lists_in(data, "train").empty() || !lists_in(data, "validation").empty() || !lists_in(data, "test").empty();
  } catch (const Error& error) {  // opening the data reports other errors
    if (error.fault() == Fault::resource) throw;
    return false;
  }
}

bool has_list_of_one_split(const std::string& data) { return is_list_file(data); }

std::string find_image_list(const std::string& data, bool training) {
  if (is_list_file(data)) return data;
  std::vector<std::string> found = lists_in(data, training ? "train" : "validation");
  if (found.empty() && !training) found = lists_in(data, "test");
  if (found.size() > 1)
    throw Error(Fault::data, concat(data, ": two lists of one split, ", found[0], " and ", found[1], "; keep one"));
  return found.empty() ? "" : found.front();
}

ListLabels labels_of_lists(const std::string& data) {
  const std::string training = find_image_list(data, true), validation = find_image_list(data, false);
  const std::string& first = training.empty() ? validation : training;
  if (first.empty()) throw Error(Fault::data, data + ": no lists train.csv or val.csv (.tsv) in it");
  return labels_of(read_image_list(first), validation == first ? "" : validation);
}

std::unique_ptr<const ImageSource> open_image_list(const ListOptions& options) {
  const std::string path = find_image_list(options.data, options.training);
  if (path.empty())
    throw Error(Fault::data, fmt::format("{}: no list {}", options.data,
                                         options.training ? "train.csv or train.tsv" : "val.csv or val.tsv"));
  const ListLabels labels = labels_of_lists(options.data);
  LabelledList list(options, read_image_list(path), labels);
  auto source = list.open();
  if (source->size() == 0 && source->faults().empty()) throw Error(Fault::data, path + ": no images in it");
  if (options.notice)
    for (const std::string& line : list.notices(source->size())) options.notice(line);
  return source;
}

}  // namespace dtrain::data
