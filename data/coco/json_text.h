// Numbers, boxes and masks as they stand in COCO's JSON files.
#pragma once

#include <string>

#include "data/coco/annotations.h"

namespace dtrain::data::coco {

// Each appends to `text`. A number has the fewest digits that are read as the same double; one that is not finite
// throws Error(Fault::numeric).
void append_json(std::string& text, double number);
// [x,y,width,height]
void append_json(std::string& text, const Box& box);
// [[x,y,x,y,...],...]
void append_json(std::string& text, const Polygons& polygons);
// {"size": [height, width], "counts": "..."}, compressed.
void append_json(std::string& text, const Rle& mask);

}  // namespace dtrain::data::coco
