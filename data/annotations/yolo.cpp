// YOLO's label files: a line per object, with coordinates as fractions of the image.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "data/annotations/folder_paths.h"
#include "data/annotations/label_set.h"
#include "data/annotations/yolo_config.h"
#include "data/coco/object_checks.h"
#include "data/label_file.h"
#include "dtrain/core/error.h"

namespace dtrain::data::annotations {
namespace {

namespace fs = std::filesystem;
using coco::kLeftOut;

// images/train/a.jpg -> labels/train/a.txt
std::string label_path(const std::string& image) {
  const std::string text = (fs::path(image).parent_path() / fs::path(image).stem()).string() + ".txt";
  const std::string in = "/" + text;
  const size_t at = in.rfind("/images/");
  return at == in.npos ? "" : (in.substr(0, at) + "/labels/" + in.substr(at + 8)).substr(1);
}

// Numbers of a line; NaN for other words.
std::vector<double> numbers_of(std::string_view line) {
  std::vector<double> numbers;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    numbers.push_back(number_of(line.substr(at, end - at)));
    at = end;
  }
  return numbers;
}

class YoloReader {
 public:
  explicit YoloReader(YoloConfig config) : config_(std::move(config)), paths_(config_.folder) {}

  LabelledImage read(const std::string& item) const try {
    if (!stays_inside(item)) throw Error(Fault::data, "its path leads out of the data set");
    LabelledImage image{.file_name = item};
    image.size = measured_size(paths_.absolute(item));
    if (const std::string labels = labels_of(item); !labels.empty())
      take_lines(labels, image);
    else
      image.findings.add("images without a file of labels", "used without objects", item, /*is_fault=*/false);
    return image;
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    throw BadRecordError(paths_.absolute(item), error.what());
  }

  // Existing file of labels of an image; empty without one.
  std::string labels_of(const std::string& item) const {
    const std::string beside = (fs::path(item).parent_path() / fs::path(item).stem()).string() + ".txt";
    for (const std::string& path : {label_path(item), beside})
      if (!path.empty() && paths_.has_file(path)) return path;
    return "";
  }

 private:
  void take_lines(const std::string& labels, LabelledImage& image) const {
    std::set<std::vector<double>> seen;
    for (const TextLine& line : read_lines(paths_.absolute(labels))) {
      const std::string title = concat(labels, ": line ", line.number);
      std::vector<double> numbers = numbers_of(line.text);
      if (!std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); }))
        image.findings.add("lines with words that are no finite numbers", kLeftOut, title);
      else if (!seen.insert(numbers).second)
        image.findings.add("lines that repeat another one of their file", kLeftOut, title);
      else
        take_numbers(std::move(numbers), title, image);
    }
  }

  void take_numbers(std::vector<double> numbers, const std::string& title, LabelledImage& image) const {
    constexpr double kRounding = 1e-6;
    if (config_.has_keypoints && numbers.size() > 5) numbers.resize(5);
    if (numbers.size() != 5 && (numbers.size() < 7 || numbers.size() % 2 == 0))
      return image.findings.add("lines of other than 5 numbers, or a class and at least 3 corners", kLeftOut, title);
    if (numbers[0] < 0 || std::trunc(numbers[0]) != numbers[0] ||
        numbers[0] >= static_cast<double>(config_.classes.size()))
      return image.findings.add("objects of classes that are not listed", kLeftOut,
                                concat(title, ": class ", numbers[0], " of ", config_.classes.size()));
    if (std::any_of(numbers.begin() + 1, numbers.end(),
                    [](double number) { return number < -kRounding || number > 1 + kRounding; }))
      return image.findings.add("lines with coordinates outside of 0 to 1", kLeftOut, title);
    const auto width = static_cast<double>(image.size.width), height = static_cast<double>(image.size.height);
    LabelledObject object{.class_name = config_.classes[static_cast<size_t>(numbers[0])], .title = title};
    if (numbers.size() == 5) {
      object.box = {(numbers[1] - numbers[3] / 2) * width, (numbers[2] - numbers[4] / 2) * height, numbers[3] * width,
                    numbers[4] * height};
    } else {
      std::vector<double> polygon(numbers.begin() + 1, numbers.end());
      for (size_t i = 0; i < polygon.size(); ++i) polygon[i] *= i % 2 == 0 ? width : height;
      object.segmentation = coco::Polygons{std::move(polygon)};
    }
    image.add(std::move(object));
  }

  YoloConfig config_;
  FolderPaths paths_;
};

}  // namespace

LabelSet open_yolo(const std::string& folder, const LabelOptions&) {
  YoloConfig config = read_yolo_config(folder);
  LabelSet set{
      .folder = config.folder, .splits = config.splits, .classes = config.classes, .findings = config.findings};
  const auto reader = std::make_shared<const YoloReader>(std::move(config));
  for (const LabelFiles& files : set.splits)
    if (std::ranges::none_of(files.items, [&](const std::string& item) { return !reader->labels_of(item).empty(); }))
      throw Error(Fault::data,
                  concat(files.where, ": none of the ", files.items.size(), " images of the split ", files.name,
                         " has a file of labels; expected labels/NAME.txt for images/NAME.jpg, "
                         "or NAME.txt beside the image"));
  set.read = [reader](const std::string& item) { return reader->read(item); };
  return set;
}

}  // namespace dtrain::data::annotations
