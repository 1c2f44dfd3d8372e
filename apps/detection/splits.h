// Splits of a data set in COCO format, in the layouts of data/coco_layout.h.
#pragma once

#include <string>
#include <vector>

namespace dtrain::detection {

// Splits with annotations whose names contain `part`, "train" or "val", in any case; for training else the split
// "default" of CVAT. Sorted. Throws Error(Fault::data) if there are none.
std::vector<std::string> annotated_splits(const std::string& folder, const std::string& part);

// Whether there is such a split.
bool has_annotated_split(const std::string& folder, const std::string& part);

// Annotation file and image folder of a split, which may not exist.
std::string annotations_in(const std::string& folder, const std::string& split);
std::string images_in(const std::string& folder, const std::string& split);

}  // namespace dtrain::detection
