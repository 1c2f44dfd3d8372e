#include "data/label_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "data/devkit.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/foreign_file.h"

namespace dtrain::data {
namespace {

constexpr size_t kMaxTextBytes = size_t{64} << 20;
constexpr std::string_view kSeparators = " \t,;";

[[noreturn]] void fail_at(const std::string& path, size_t line, const std::string& what) {
  throw Error(Fault::data, concat(path, ": line ", line, ": ", what));
}

std::string shown(const std::string& text) { return concat("'", text.substr(0, 80), "'"); }

// Lines of a file of labels, or of the labels in ImageNet's development kit.
std::vector<TextLine> label_lines(const std::string& path) {
  if (!is_gzip_file(path)) return read_lines(path);
  std::vector<TextLine> lines;
  for (const std::string& label : devkit_labels(path)) lines.push_back({lines.size() + 1, label});
  return lines;
}

// Word `i` (0-based) of a line, or "".
std::string word(const std::string& line, size_t i) {
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find_first_of(kSeparators, begin), line.size());
    if (end > begin && i-- == 0) return line.substr(begin, end - begin);
    begin = end + 1;
  }
  return "";
}

bool is_number(const std::string& text) { return text.find_first_not_of("0123456789") == std::string::npos; }

class ImageLabels {
 public:
  ImageLabels(std::vector<TreeImage>& images, const std::vector<std::string>& classes, int64_t first_label,
              const std::string& labels_file, const std::string& place)
      : images_(images), path_(labels_file), place_(place), lines_(label_lines(labels_file)) {
    for (const std::string& name : classes)
      if (!labels_.emplace(name, first_label + static_cast<int64_t>(labels_.size())).second)
        throw Error(Fault::data, concat("class ", name, " is listed twice"));
    for (size_t i = 0; i < images.size(); ++i) {
      const std::string& name = images[i].filename;
      by_name_[name] = i;
      by_name_[name.substr(0, name.rfind('.'))] = i;
    }
  }

  void assign() {
    const auto names_image = [this](size_t i) {
      return i < lines_.size() && by_name_.contains(word(lines_[i].text, 0)) && !word(lines_[i].text, 1).empty();
    };
    if (names_image(0))
      by_names(0);
    else if (names_image(1))
      by_names(1);  // retry after a heading
    else
      by_order();
  }

 private:
  void by_order() {
    if (images_.size() != lines_.size())
      throw Error(Fault::data, concat(path_, ": ", lines_.size(), " lines, expected one for each of the ",
                                      images_.size(), " images in ", place_));
    for (size_t i = 0; i < lines_.size(); ++i)
      give(images_[i], labels_.contains(lines_[i].text) ? lines_[i].text : word(lines_[i].text, 0), lines_[i].number);
  }

  void by_names(size_t first) {
    std::vector<bool> named(images_.size());
    for (size_t i = first; i < lines_.size(); ++i) {
      const TextLine& line = lines_[i];
      const std::string name = word(line.text, 0);
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) fail_at(path_, line.number, shown(name) + " is no image in " + place_);
      if (named[found->second]) fail_at(path_, line.number, shown(name) + " is listed twice");
      named[found->second] = true;
      give(images_[found->second], word(line.text, 1), line.number);
    }
    if (const auto left = std::ranges::find(named, false); left != named.end())
      throw Error(Fault::data, concat(path_, ": has no line for ",
                                      images_[static_cast<size_t>(left - named.begin())].filename, " in ", place_));
  }

  void give(TreeImage& image, const std::string& name, size_t line) const {
    const auto label = labels_.find(name);
    if (label == labels_.end())
      fail_at(path_, line,
              concat(name, " is not one of the ", labels_.size(), " classes",
                     is_number(name) ? "; the numbers of ImageNet's development kit have another order: give "
                                       "the kit itself, ILSVRC2012_devkit_t12.tar.gz"
                                     : ""));
    image.label = label->second;
    image.synset = name;
  }

  std::vector<TreeImage>& images_;
  const std::string &path_, &place_;
  const std::vector<TextLine> lines_;
  std::map<std::string, int64_t> labels_;
  std::map<std::string, size_t> by_name_;
};

}  // namespace

std::vector<TextLine> read_lines(const std::string& path) {
  const std::string bytes = read_text(path, kMaxTextBytes);
  if (const std::string kind = foreign_content(bytes); !kind.empty()) fail_at(path, 1, "is " + kind);
  std::string_view text = bytes;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<TextLine> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find('\0') != std::string::npos)
      fail_at(path, number, "has a byte of 0: no text, or text in UTF-16; save it as UTF-8");
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (!line.empty()) lines.push_back({number, line});
  }
  return lines;
}

std::vector<std::string> read_class_list(const std::string& path, const std::vector<std::string>& known,
                                         std::vector<std::string>* titles) {
  const std::vector<TextLine> lines = read_lines(path);
  if (lines.empty()) throw Error(Fault::data, path + ": lists no class");
  const std::set<std::string> names(known.begin(), known.end());
  const bool is_list = std::ranges::any_of(lines, [&](const TextLine& line) { return names.contains(line.text); });
  const bool is_mapping =
      !is_list && std::ranges::any_of(lines, [&](const TextLine& line) { return names.contains(word(line.text, 0)); });
  if (!is_list && !is_mapping && !known.empty())
    fail_at(path, lines.front().number,
            concat(shown(lines.front().text),
                   " is no class that has images, and neither is any other line; the first "
                   "of these classes is ",
                   known.front()));
  std::vector<std::string> classes;
  std::set<std::string> seen;
  for (const TextLine& line : lines) {
    classes.push_back(is_mapping ? word(line.text, 0) : line.text);
    if (is_mapping && titles != nullptr) titles->push_back(line.text);
    if (!seen.insert(classes.back()).second)
      fail_at(path, line.number, concat("class ", classes.back(), " is listed twice"));
  }
  for (const std::string& name : known)
    if (!seen.contains(name))
      throw Error(Fault::data, concat(path, ": has no line for ", name, ", which has images: not one of the ",
                                      classes.size(), " classes that are listed"));
  return classes;
}

void label_by_lines(std::vector<TreeImage>& images, const std::vector<std::string>& classes, int64_t first_label,
                    const std::string& labels_file, const std::string& place) {
  ImageLabels(images, classes, first_label, labels_file, place).assign();
}

}  // namespace dtrain::data
