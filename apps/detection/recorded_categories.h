// The categories that the classes of a detector stand for, as its weights have recorded them.
#pragma once

#include <string>
#include <vector>

#include "data/coco/annotations.h"

namespace dtrain::detection {

inline constexpr char kCategoriesKey[] = "categories";  // of records, see cli::recorded_with()

// As a record holds them: a list of {"id", "name"}. Bytes of names that are no UTF-8 are replaced.
std::string categories_text(const std::vector<data::coco::Category>& categories);

// Those of the weights in `file`; none where they have recorded none. Throws Error(Fault::checkpoint) for a record that
// no program here writes.
std::vector<data::coco::Category> recorded_categories(const std::string& file);

// Those of COCO's annotations `path`, of which nothing else is needed, or the ones with the names `classes`, in their
// order. Throws as read_annotations does.
std::vector<data::coco::Category> categories_in(const std::string& path, const std::vector<std::string>& classes = {});

}  // namespace dtrain::detection
