// Splits of a COCO data set.
#pragma once

#include <optional>
#include <string>

namespace dtrain::dataset {

// A split in COCO's folder layout.
struct AnnotatedSplit {
  std::string annotations, images;
};

// annotations/instances_SPLIT<year>.json of `input` and its image folder; none if missing. Throws Error(Fault::data) if
// there are several years and `year` is empty, or if there is no image folder.
std::optional<AnnotatedSplit> find_split(const std::string& input, const std::string& split, const std::string& year);

// Prints a notice about annotations that belong to neither split.
void report_others(const std::string& input, const std::optional<AnnotatedSplit>& train,
                   const std::optional<AnnotatedSplit>& validation);

}  // namespace dtrain::dataset
