// Images of an "instances" file, one at a time: their names and sizes as far as the file states them.
#pragma once

#include <optional>
#include <string>

#include "data/coco/record.h"

namespace dtrain::data::coco {

// The image, completed where the file does not say it all; nothing where it is left out, which the findings and
// unusable images of `result` get. Throws Error(Fault::data) for an image without an id, and, where it is looked for,
// for a name that leads out of its folder or has more than 4096 bytes.
std::optional<Image> take_image_record(Record& record, const AnnotationOptions& options, Annotations& result);

}  // namespace dtrain::data::coco
