// The checks of `dtrain-data check` for COCO's annotations.
#pragma once

#include <string>

#include "apps/dataset/file_checks.h"

namespace dtrain::dataset {

// Whether a file of this name in a folder is one of annotations.
bool has_annotations_name(const std::string& name);

// What training would leave out or read otherwise, and the images that are listed, where their folder is there. Throws
// Error(Fault::data) where the file holds no COCO annotations.
void check_annotations(const std::string& path, Found how, FileProblems& found);

}  // namespace dtrain::dataset
