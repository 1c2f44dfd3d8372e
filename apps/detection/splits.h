// The halves of a data set in COCO's layout: annotations/instances_SPLIT.json and the images in the folder SPLIT.
#pragma once

#include <string>
#include <vector>

namespace dtrain::detection {

// Splits with annotations whose names contain `part`, sorted. Throws Error(Fault::data) where there are none.
std::vector<std::string> annotated_splits(const std::string& folder, const std::string& part);

// Whether there is one.
bool has_annotated_split(const std::string& folder, const std::string& part);

// The file of a split's annotations.
std::string annotations_in(const std::string& folder, const std::string& split);

}  // namespace dtrain::detection
