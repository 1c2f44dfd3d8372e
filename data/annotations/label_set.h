// Detection data sets in the formats of annotation tools, read as COCO annotations.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/annotations/labelled_image.h"
#include "dtrain/data/bad_record.h"
#include "dtrain/data/detection_source.h"

namespace dtrain::data::annotations {

// How coordinates of VOC boxes are read. `inclusive`: as in the devkit, pixels are numbered from 1 and xmax belongs to
// the box; `one_based`: the first pixel is at 1, and xmax - xmin is the width; `zero_based`: the first pixel is at 0,
// and xmax - xmin is the width.
enum class VocBoxes { inclusive, one_based, zero_based };
// What becomes of VOC's difficult objects: `crowd` objects are neither trained on nor counted as missed.
enum class Difficult { crowd, keep, drop };

struct LabelOptions {
  std::vector<std::string> classes{};  // in this order; objects of others are left out. Empty: all
  VocBoxes voc_boxes = VocBoxes::inclusive;
  Difficult difficult = Difficult::crowd;
  bool masks = true;  // read VOC's SegmentationObject
};

// Files of a split. An item is the path of an annotation file or, of YOLO, of an image, relative to LabelSet::folder.
struct LabelFiles {
  std::string name{};   // "train", "val" or "test"
  std::string where{};  // file or folder that lists them, for messages
  std::vector<std::string> items{};
};

// A data set whose files are listed but not read.
struct LabelSet {
  std::string folder{};
  std::vector<LabelFiles> splits{};    // at least one
  std::vector<std::string> classes{};  // empty: the names of the objects, in the order of their bytes
  coco::Findings findings{};
  // Reads an item. Thread-safe. Throws BadRecordError if image or annotations cannot be used.
  std::function<LabelledImage(const std::string& item)> read{};
};

// All throw Error(Fault::data) for a folder without such a data set, and for names that lead out of it.
// PASCAL VOC: Annotations/*.xml, JPEGImages, ImageSets/Main/{train,val,trainval,test}.txt and SegmentationObject, or
// folders (train, valid, test, or `folder` itself) in which XML files and images lie side by side.
LabelSet open_voc(const std::string& folder, const LabelOptions& options);
// YOLO: data.yaml of Ultralytics, or obj.data or class names of darknet. `folder` may be the YAML file.
LabelSet open_yolo(const std::string& folder, const LabelOptions& options);
// labelme: JSON files with shapes, in any subfolders.
LabelSet open_labelme(const std::string& folder, const LabelOptions& options);

// A split with all of its images read.
struct LabelledSplit {
  std::string name{}, where{};
  coco::Annotations annotations{};      // image names are relative to LabelSet::folder
  std::vector<std::string> embedded{};  // of each image; see LabelledImage
  std::vector<BadRecord> unusable{};
};

// What was read of each item; nothing for an item whose problem is in `unusable` of its split.
struct ReadSplit {
  std::vector<std::optional<LabelledImage>> images{};
  std::vector<BadRecord> unusable{};
};

// Numbers images from 1 over all splits, and categories from 1 in the order of the classes. `read`: by split.
std::vector<LabelledSplit> assemble(const LabelSet& set, std::vector<ReadSplit> read, const LabelOptions& options);

// The images of `split` in `folder`, including those embedded in annotation files.
std::shared_ptr<const DetectionSource> open_labels(const std::string& folder, LabelledSplit split);

}  // namespace dtrain::data::annotations
