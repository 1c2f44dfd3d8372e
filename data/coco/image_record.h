// Images of an "instances" file, one at a time: their names and sizes as far as the file states them.
#pragma once

#include <optional>
#include <string>

#include "data/coco/record.h"

namespace dtrain::data::coco {

// The image, completed where the file does not say it all; nothing where it is left out. Findings get that. Throws
// Error(Fault::data) for an image without an id, and for a name that leads out of its folder.
std::optional<Image> take_image_record(Record& record, const AnnotationOptions& options, Findings& findings);

}  // namespace dtrain::data::coco
