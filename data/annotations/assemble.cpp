// Assembly of the images of a data set to COCO annotations.
#include <algorithm>
#include <map>
#include <set>

#include "data/annotations/label_set.h"
#include "data/coco/object_checks.h"
#include "dtrain/core/error.h"
#include "libdtrain/io/utf8.h"

namespace dtrain::data::annotations {
namespace {

std::vector<std::string> classes_of(const std::vector<ReadSplit>& read) {
  std::set<std::string> names;
  for (const ReadSplit& split : read)
    for (const auto& image : split.images)
      if (image)
        for (const LabelledObject& object : image->objects)
          if (is_utf8(object.class_name)) names.insert(object.class_name);
  return {names.begin(), names.end()};
}

class Assembler {
 public:
  explicit Assembler(const std::vector<std::string>& classes) {
    for (const std::string& name : classes) {
      const auto id = static_cast<int64_t>(categories_.size()) + 1;
      if (!classes_.emplace(name, static_cast<uint32_t>(id - 1)).second)
        throw Error(Fault::data, concat("two classes have the name '", name, "'"));
      categories_.push_back({id, name});
    }
  }

  LabelledSplit assemble(const LabelFiles& files, ReadSplit read) {
    LabelledSplit split{.name = files.name, .where = files.where, .unusable = std::move(read.unusable)};
    split.annotations.categories = categories_;
    for (std::optional<LabelledImage>& image : read.images)
      if (image) add(std::move(*image), split);
    return split;
  }

 private:
  void add(LabelledImage image, LabelledSplit& split) {
    coco::Annotations& all = split.annotations;
    all.findings.merge(image.findings);
    if (!is_utf8(image.file_name)) {
      split.unusable.push_back(BadRecordError(image.file_name, "its name is not UTF-8, which COCO requires").record());
      return;
    }
    const auto index = static_cast<uint32_t>(all.images.size());
    for (LabelledObject& object : image.objects) {
      const auto category = classes_.find(object.class_name);
      if (category == classes_.end()) {
        all.findings.add(
            "objects of classes that are not listed", coco::kLeftOut,
            concat(object.title, ": ", is_utf8(object.class_name) ? "'" + object.class_name + "'" : "not UTF-8"));
        continue;
      }
      all.annotations.push_back({.id = ++annotations_,
                                 .image = index,
                                 .category = category->second,
                                 .is_crowd = object.is_crowd,
                                 .area = object.area,
                                 .box = object.box,
                                 .segmentation = std::move(object.segmentation)});
    }
    all.images.push_back({.id = ++images_,
                          .file_name = std::move(image.file_name),
                          .width = image.size.width,
                          .height = image.size.height});
    all.begins.push_back(all.annotations.size());
    split.embedded.push_back(std::move(image.embedded));
  }

  std::vector<coco::Category> categories_;
  std::map<std::string, uint32_t> classes_;
  int64_t images_ = 0, annotations_ = 0;
};

}  // namespace

std::vector<LabelledSplit> assemble(const LabelSet& set, std::vector<ReadSplit> read, const LabelOptions& options) {
  DT_CHECK(read.size() == set.splits.size(), "assemble: ", read.size(), " of ", set.splits.size(), " splits");
  const std::vector<std::string>& listed = options.classes.empty() ? set.classes : options.classes;
  for (const std::string& name : listed)
    if (!is_utf8(name))
      throw Error(Fault::data, concat(options.classes.empty() ? set.folder : "--classes", ": the class name '", name,
                                      "' is not UTF-8; save the file that lists it as UTF-8"));
  Assembler assembler(listed.empty() ? classes_of(read) : listed);
  std::vector<LabelledSplit> splits;
  for (size_t i = 0; i < read.size(); ++i) splits.push_back(assembler.assemble(set.splits[i], std::move(read[i])));
  splits.front().annotations.findings.merge(set.findings);
  return splits;
}

}  // namespace dtrain::data::annotations
