// Categories of a detector's classes, recorded with its weights.
#pragma once

#include <string>
#include <vector>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::detection {

inline constexpr char kCategoriesKey[] = "categories";  // metadata key, see cli::recorded_with()

// Serialised as a JSON list of {"id", "name"}. Invalid UTF-8 in names is replaced.
std::string categories_text(const std::vector<data::coco::Category>& categories);

// Categories recorded with the weights in `file`; none if not recorded. Throws Error(Fault::checkpoint) for an invalid
// record.
std::vector<data::coco::Category> recorded_categories(const std::string& file);

// Categories of the COCO annotations `path`; only those named `classes`, in that order, if given. Throws like
// read_annotations.
std::vector<data::coco::Category> categories_in(const std::string& path, const std::vector<std::string>& classes = {});

}  // namespace dtrain::detection
