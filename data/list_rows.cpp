// Rows of a list of images: header, columns, labels.
#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/delimited_text.h"
#include "data/image_index.h"
#include "data/image_list.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/core/lower_case.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostListBytes = size_t{1} << 30, kMostBadRows = 100'000, kMostLabels = size_t{1} << 20;
constexpr size_t kMostImages = 50'000'000, kMostNameBytes = 4096, kMostLabelBytes = 1024;

// Indices of the fields of a row.
struct Columns {
  size_t path = 0;
  std::vector<size_t> labels{};
  size_t first_further = 1;  // fields from here on are labels, too
  size_t width = 0;          // of the header; 0: none
  bool may_be_hot = false;   // the labels may be columns of 0 and 1, named by the header
};

// Column of the paths by its name, in lower case: "filename" goes before "id". The first one without such a name.
size_t path_column(const std::vector<std::string>& lower) {
  constexpr std::array kNames = {"path", "file_path",  "filepath", "file_name",  "filename",
                                 "file", "image_path", "img_path", "image_name", "image",
                                 "img",  "name",       "image_id", "imageid",    "id"};
  for (const char* name : kNames)
    if (const auto found = std::ranges::find(lower, name); found != lower.end())
      return static_cast<size_t>(found - lower.begin());
  return 0;
}

// label, labels, label_2, class, tags and the like.
bool is_label_column(const std::string& name) {
  const std::string word = name.substr(0, name.find_last_not_of("0123456789_ ") + 1);
  constexpr std::array kNames = {"label",      "labels",   "class",      "classes",    "category",
                                 "categories", "target",   "targets",    "tag",        "tags",
                                 "class_id",   "label_id", "class_name", "label_name", "y"};
  return std::ranges::find(kNames, word) != kNames.end();
}

std::string trimmed(const DelimitedField& field) {
  if (field.quoted) return field.text;
  const size_t begin = std::min(field.text.find_first_not_of(" \t"), field.text.size());
  return field.text.substr(begin, field.text.find_last_not_of(" \t") + 1 - begin);
}

bool has_control_character(const std::string& text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

class ListReader {
 public:
  explicit ListReader(const std::string& path) : root_(fs::path(path).parent_path().string()) {
    list_.path = path;
    if (root_.empty()) root_ = ".";
  }

  ImageList read(std::string_view text) {
    const bool tabs = lower_case(list_.path).ends_with(".tsv");
    DelimitedText rows(text, tabs ? '\t' : ',');
    DelimitedRow row;
    bool first = true;
    while (rows.next(row)) {
      if (!row.fault.empty())
        add_fault(row.line, row.fault);
      else if (!first || !is_header(row))
        add(row);
      else
        read_header(row);
      first = false;
    }
    if (is_hot())
      take_hot_columns();
    else
      refuse_other_marks();
    drop_empty_labels();
    return std::move(list_);
  }

 private:
  void add_fault(uint64_t line, const std::string& reason) {
    if (list_.faults.size() == kMostBadRows)
      throw Error(Fault::data, fmt::format("{}:{}: {}; {} rows before it are malformed, too: this is no list of images",
                                           list_.path, line, reason, kMostBadRows));
    list_.faults.push_back(fmt::format("{}:{}: {}", list_.path, line, reason));
  }

  bool is_header(const DelimitedRow& row) const {
    const std::string& first = row.fields.front().text;
    std::error_code unknown;
    return !has_image_name(first) && !fs::is_regular_file(path_below(root_, first), unknown);
  }

  void read_header(const DelimitedRow& row) {
    std::vector<std::string> lower;
    for (const DelimitedField& field : row.fields) {
      header_.push_back(trimmed(field));
      lower.push_back(lower_case(header_.back()));
    }
    columns_.path = path_column(lower);
    for (size_t i = 0; i < lower.size(); ++i)
      if (i != columns_.path && is_label_column(lower[i])) columns_.labels.push_back(i);
    columns_.may_be_hot = columns_.labels.empty() && lower.size() > 2;
    if (columns_.labels.empty())
      for (size_t i = 0; i < lower.size(); ++i)
        if (i != columns_.path) columns_.labels.push_back(i);
    columns_.first_further = columns_.width = lower.size();
    list_.columns = fmt::format("header row in line {}: paths in column {}", row.line, header_[columns_.path]);
    std::vector<std::string> labels, others;
    for (size_t i = 0; i < header_.size(); ++i)
      if (i != columns_.path) (is_label(i) ? labels : others).push_back(header_[i]);
    if (!labels.empty()) list_.columns += fmt::format(", labels in {}", fmt::join(labels, ", "));
    if (!others.empty()) list_.columns += fmt::format("; left out the columns {}", fmt::join(others, ", "));
  }

  bool is_label(size_t column) const { return std::ranges::find(columns_.labels, column) != columns_.labels.end(); }

  uint32_t number_of(std::string&& label) {
    const auto [found, is_new] = numbers_.try_emplace(std::move(label), static_cast<uint32_t>(list_.labels.size()));
    if (is_new) list_.labels.push_back(found->first);
    if (list_.labels.size() > kMostLabels)
      throw Error(Fault::data, fmt::format("{}: more than {} different labels", list_.path, kMostLabels));
    return found->second;
  }

  // Reason why the field is not a path, else "".
  static std::string fault_of_path(const std::string& name) {
    if (name.empty()) return "no path";
    if (name.size() > kMostNameBytes) return fmt::format("a path of {} bytes", name.size());
    if (is_remote(name)) return "the path is a URL; lists name local files";
    return "";
  }

  void add(const DelimitedRow& row) {
    if (columns_.path >= row.fields.size()) return add_fault(row.line, "no path");
    ListedImage image{.name = row.fields[columns_.path].text, .line = row.line};
    if (const std::string fault = fault_of_path(image.name); !fault.empty()) return add_fault(row.line, fault);
    if (columns_.width > 0 && row.fields.size() > columns_.width && !is_label(columns_.width - 1))
      return add_fault(row.line, fmt::format("{} fields; the header has {}", row.fields.size(), columns_.width));
    const auto take = [&](size_t i) {
      std::string label = trimmed(row.fields[i]);
      if (label.size() > kMostLabelBytes) return fmt::format("a label of {} bytes", label.size());
      if (has_control_character(label)) return std::string("a label with a line break or control character");
      image.labels.push_back(number_of(std::move(label)));
      return std::string();
    };
    std::string fault;
    for (const size_t i : columns_.labels)
      if (i < row.fields.size() && fault.empty()) fault = take(i);
    for (size_t i = columns_.first_further; i < row.fields.size() && fault.empty(); ++i) fault = take(i);
    if (!fault.empty()) return add_fault(row.line, fault);
    if (list_.images.size() == kMostImages)
      throw Error(Fault::data, fmt::format("{}:{}: more than {} images", list_.path, row.line, kMostImages));
    list_.images.push_back(std::move(image));
  }

  // Whether all labels are 0 or 1 in columns with names.
  bool is_hot() const {
    constexpr std::array kValues = {"0", "1", "0.0", "1.0"};
    return columns_.may_be_hot && !list_.images.empty() &&
           std::ranges::all_of(
               list_.labels,
               [&](const std::string& label) { return std::ranges::find(kValues, label) != kValues.end(); }) &&
           std::ranges::all_of(list_.images,
                               [&](const ListedImage& image) { return image.labels.size() == columns_.labels.size(); });
  }

  // Columns of 0, 1 and other marks, such as -1 for unknown, are neither names nor numbers of classes.
  void refuse_other_marks() const {
    constexpr std::array kMarks = {"", "0", "1", "-1", "0.0", "1.0", "-1.0", "nan", "NaN"};
    if (!columns_.may_be_hot || list_.images.empty()) return;
    for (const std::string& label : list_.labels)
      if (std::ranges::find(kMarks, label) == kMarks.end()) return;
    throw Error(Fault::data,
                fmt::format("{}: columns without 0 or 1 in some row; give 0 or 1 in each column of each row, or name "
                            "columns with numbers of classes label_1, label_2, ...",
                            list_.path));
  }

  void take_hot_columns() {
    std::vector<std::string> names;
    for (const size_t i : columns_.labels) {
      if (header_[i].empty() || std::ranges::find(names, header_[i]) != names.end())
        throw Error(Fault::data, fmt::format("{}: columns of 0 and 1 need different names in the header", list_.path));
      names.push_back(header_[i]);
    }
    for (ListedImage& image : list_.images) {
      std::vector<uint32_t> hot;
      for (uint32_t i = 0; i < image.labels.size(); ++i)
        if (list_.labels[image.labels[i]].front() == '1') hot.push_back(i);
      image.labels = std::move(hot);
    }
    list_.labels = std::move(names);
    list_.columns += " (0 or 1 in each row)";
    numbers_.clear();
  }

  // Also drops duplicates, and notes the first image with several labels.
  void drop_empty_labels() {
    const auto empty = std::ranges::find(list_.labels, "");
    const auto dropped = static_cast<uint32_t>(empty - list_.labels.begin());
    if (empty != list_.labels.end()) list_.labels.erase(empty);
    for (ListedImage& image : list_.images) {
      std::erase(image.labels, dropped);
      for (uint32_t& label : image.labels) label -= label > dropped;
      std::ranges::sort(image.labels);
      image.labels.erase(std::ranges::unique(image.labels).begin(), image.labels.end());
      if (list_.several == 0 && image.labels.size() > 1) list_.several = image.line;
    }
  }

  std::string root_;
  Columns columns_{};
  std::vector<std::string> header_;
  std::unordered_map<std::string, uint32_t> numbers_;
  ImageList list_;
};

}  // namespace

ImageList image_list_from(std::string_view text, const std::string& path) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw Error(Fault::data, path + ": is UTF-16 text; save it as UTF-8");
  return ListReader(path).read(text);
}

ImageList read_image_list(const std::string& path) {
  if (is_remote(path))
    throw Error(Fault::data, shown_path(path) + ": lists are read from local folders; copy it first");
  return image_list_from(read_text(path, kMostListBytes), path);
}

}  // namespace dtrain::data
