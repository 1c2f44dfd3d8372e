// Images with what was predicted for them, as evaluations leave them.
#pragma once

#include <string>

#include "apps/report/run_data.h"

namespace dtrain::report {

// Of detection: FOLDER/gallery.json and the pictures it names, as `dtrain-mask-rcnn eval --gallery=FOLDER` writes them.
void read_gallery(const std::string& folder, RunData& run);

// Of classification: the lines of `dtrain-classify --json`. The `most` worst and best images are those of the lowest
// and highest probability of their label or, where lines have none, of their most probable class. Images are looked for
// where the lines say, else beside the file.
void read_predictions(const std::string& path, size_t most, RunData& run);
// Whether a line is one of such a file.
bool is_prediction(const std::string& line);

// Both throw Error(Fault::data) for files of another kind. A picture that cannot be read is left out with a notice.

}  // namespace dtrain::report
