// Images with predictions, from evaluation outputs.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Detection: FOLDER/gallery.json and its pictures, written by `dtrain-mask-rcnn eval --gallery=FOLDER`.
void read_gallery(const std::string& folder, RunData& run);

// Classification: lines of `dtrain-classify --json`. The `most` worst and best images have the lowest and highest
// probability of their label or, without labels, of their most probable class. Images are searched at their path, then
// beside the file.
void read_predictions(const std::string& path, size_t most, RunData& run);
// Whether a line is from such a file.
bool is_prediction(const std::string& line);

// Both throw Error(Fault::data) for other formats. Unreadable pictures are skipped with a notice.

}  // namespace dtrain::report
