// Files of a data set in PASCAL VOC's layout, or of XML files beside images.
#pragma once

#include <string>
#include <vector>

#include "data/annotations/label_set.h"

namespace dtrain::data::annotations {

// XML files by split, relative to `folder`.
std::vector<LabelFiles> voc_splits(const std::string& folder);

}  // namespace dtrain::data::annotations
