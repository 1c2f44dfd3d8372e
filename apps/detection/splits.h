// Splits of a data set in COCO format: annotations/instances_SPLIT.json and the images in SPLIT/.
#pragma once

#include <string>
#include <vector>

namespace dtrain::detection {

// Splits with annotations whose names contain `part`, sorted. Throws Error(Fault::data) if there are none.
std::vector<std::string> annotated_splits(const std::string& folder, const std::string& part);

// Whether there is such a split.
bool has_annotated_split(const std::string& folder, const std::string& part);

// Annotation file of a split.
std::string annotations_in(const std::string& folder, const std::string& split);

}  // namespace dtrain::detection
