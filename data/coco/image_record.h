// Parsing of the images of an "instances" file.
#pragma once

#include <optional>
#include <string>

#include "data/coco/record.h"

namespace dtrain::data::coco {

// Parses an image, completed by AnnotationOptions::complete if name or size is missing. Returns nothing for a skipped
// image, which is added to the findings and unusable images of `result`. Throws Error(Fault::data) for an image without
// an id, and, if the file is looked up, for a name that escapes its folder or exceeds 4096 bytes.
std::optional<AnnotatedImage> take_image_record(Record& record, const AnnotationOptions& options, Annotations& result);

}  // namespace dtrain::data::coco
