// Serialisation of ground truth.
#pragma once

#include <string>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::data::coco {

// "instances" JSON file that read_annotations() parses to the same value; polygons stay polygons, masks are compressed
// RLE. Throws Error(Fault::numeric) for a number that is not finite, Error for an index out of range.
std::string to_json(const Annotations& annotations);

}  // namespace dtrain::data::coco
