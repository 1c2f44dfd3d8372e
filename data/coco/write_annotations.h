// Writing ground truth: the other direction of annotations.h.
#pragma once

#include <string>

#include "data/coco/annotations.h"

namespace dtrain::data::coco {

// An "instances" JSON file that read_annotations() reads as the same, with polygons as they are and masks as compressed
// RLE. Throws Error(Fault::numeric) where a number is not finite, Error where an index is out of range.
std::string to_json(const Annotations& annotations);

}  // namespace dtrain::data::coco
