// Checks of `dtrain-data check` for COCO annotations.
#pragma once

#include <string>

#include "apps/dataset/file_checks.h"

namespace dtrain::dataset {

// Whether a file name is one of annotations.
bool has_annotations_name(const std::string& name);

// Reports what training would drop or repair, and checks the listed images if their folder exists. Throws
// Error(Fault::data) if the file has no COCO annotations.
void check_annotations(const std::string& path, Found how, FileProblems& found);

}  // namespace dtrain::dataset
