// Checks of `dtrain-data check` by file type.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "apps/dataset/problems.h"
#include "apps/dataset/set_checker.h"

namespace dtrain::dataset {

// A unit of work of one thread.
using Check = std::function<void(FileProblems&)>;

// Shared state of all checks.
struct CheckContext {
  explicit CheckContext(const DataFiles& records) : sets(records) {}

  SetChecker sets;
  std::atomic<int> thumbnails{48};  // thumbnails that may still be made
  int thumbnail_pixels = 160;       // of the shorter side
};

// How a file was found.
enum class Found { named, in_folder, beside_images };

// Checks for the file `path`: one for an image, label file, TFRecord file, IDX file or COCO annotations, and one per
// member of a tar archive. Any other file among images must be an image; JSON in a folder is checked only if it is
// named like annotations. Never throws for faulty files: the checks report them.
std::vector<Check> checks_of(const std::string& path, Found how, CheckContext& context);

}  // namespace dtrain::dataset
