// Splits of a COCO data set.
#pragma once

#include <string>
#include <vector>

namespace dtrain::dataset {

// A split in a layout of data/coco_layout.h.
struct AnnotatedSplit {
  std::string name{};  // "train", "val" or "test"
  std::string annotations{}, images{};
};

// Training, validation and test split of `input`, those that exist. A note names annotations that belong to none.
// Throws Error(Fault::data) without training and validation split, if there are several years and `year` is empty, and
// if a split has no image folder.
std::vector<AnnotatedSplit> find_splits(const std::string& input, const std::string& year);

}  // namespace dtrain::dataset
