// The checks of `dtrain-data check`, by what a file is.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "apps/dataset/problems.h"
#include "apps/dataset/set_checker.h"

namespace dtrain::dataset {

// A part of the work that one thread does.
using Check = std::function<void(FileProblems&)>;

// What all checks of a run share.
struct CheckContext {
  explicit CheckContext(const DataFiles& records) : sets(records) {}

  SetChecker sets;
  std::atomic<int> thumbnails{48};  // that are still made
  int thumbnail_pixels = 160;       // of the shorter side
};

// How a file came to be checked.
enum class Found { named, in_folder, beside_images };

// What is to be done for the file `path`: a check for an image, a file of labels, TFRecord and IDX files and COCO's
// annotations, one for each member of a tar archive. A file beside images that is none of these by its name has to be
// an image; JSON in a folder is of interest where it has a name of annotations. Never throws for what is wrong with the
// file: that is for its checks to say.
std::vector<Check> checks_of(const std::string& path, Found how, CheckContext& context);

}  // namespace dtrain::dataset
