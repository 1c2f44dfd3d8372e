// JSON text of numbers, boxes and masks in COCO's format. Built without nlohmann/json, which prints 1 as 1.0 and would
// hold millions of coordinates as a tree.
#pragma once

#include <string>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::data::coco {

// Each function appends to `text`. Numbers are printed with the fewest digits that parse to the same double. Throws
// Error(Fault::numeric) for a number that is not finite.
void append_json(std::string& text, double number);
// [x,y,width,height]
void append_json(std::string& text, const BoundingBox& box);
// [[x,y,x,y,...],...]
void append_json(std::string& text, const Polygons& polygons);
// {"size": [height, width], "counts": "..."} with compressed RLE.
void append_json(std::string& text, const Rle& mask);

}  // namespace dtrain::data::coco
