// Small data sets in the formats of annotation tools, and what is read of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "data/annotations/label_set.h"
#include "dtrain/data/png.h"
#include "tests/data/noise.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::annotations {

class LabelFolder {
 public:
  // Writes a file and its folders.
  void place(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path.string(), text);
  }
  void place(const std::string& name, const std::vector<std::byte>& bytes) const {
    place(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  void place_image(const std::string& name, int width, int height) const {
    place(name, encode_png(noise(width, height, 1).view()));
  }
  std::string path() const { return root_.path().string(); }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

 private:
  TempDirectory root_;
};

// Reads all items, as dtrain-data does.
inline std::vector<LabelledSplit> read_all(const LabelSet& set, const LabelOptions& options = {}) {
  std::vector<ReadSplit> read;
  for (const LabelFiles& files : set.splits) {
    ReadSplit& split = read.emplace_back();
    for (const std::string& item : files.items) try {
        split.images.emplace_back(set.read(item));
      } catch (const BadRecordError& error) {
        split.images.emplace_back();
        split.unusable.push_back(error.record());
      }
  }
  return assemble(set, std::move(read), options);
}

// "cat 1 2 3.5 4" of an annotation.
inline std::string text_of(const coco::Annotations& all, const coco::Annotation& one) {
  const coco::BoundingBox& box = one.box;
  return concat(all.categories[one.category].name, " ", box.x, " ", box.y, " ", box.width, " ", box.height,
                one.is_crowd ? " crowd" : "");
}

// Of all objects of a split.
inline std::vector<std::string> objects_of(const LabelledSplit& split) {
  std::vector<std::string> objects;
  for (const coco::Annotation& one : split.annotations.annotations) objects.push_back(text_of(split.annotations, one));
  return objects;
}

inline std::vector<std::string> names_of(const LabelledSplit& split) {
  std::vector<std::string> names;
  for (const coco::AnnotatedImage& image : split.annotations.images)
    names.push_back(concat(image.file_name, " ", image.width, "x", image.height));
  return names;
}

using Texts = std::vector<std::string>;

}  // namespace dtrain::data::annotations
