// The splits of a folder of COCO's annotations.
#pragma once

#include <optional>
#include <string>

namespace dtrain::dataset {

// A split as it lies in COCO's folders.
struct AnnotatedSplit {
  std::string annotations, images;
};

// annotations/instances_SPLIT<year>.json of `input` and the folder of its images; nothing where there is none. Throws
// Error(Fault::data) where there are several and `year` is empty, and where its images have no folder.
std::optional<AnnotatedSplit> find_split(const std::string& input, const std::string& split, const std::string& year);

// A notice of the annotations that belong to neither.
void report_others(const std::string& input, const std::optional<AnnotatedSplit>& train,
                   const std::optional<AnnotatedSplit>& validation);

}  // namespace dtrain::dataset
