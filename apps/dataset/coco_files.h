// Writing of detection data sets in COCO's layout.
#pragma once

#include <vector>

#include "apps/dataset/annotated_source.h"
#include "apps/dataset/stored_image.h"
#include "apps/dataset/writing.h"

namespace dtrain::dataset {

// Writes annotations/instances_SPLIT.json and the images of each split in SPLIT/, as a new folder --output. Images are
// decoded once as a check and keep their bytes; `links`: symbolic links instead of copies. Handles bad images as
// --on_bad_image says. Returns the exit code.
int write_coco_files(const CommonFlags& common, const std::vector<AnnotatedSource>& splits, bool links, bool masks);

}  // namespace dtrain::dataset
