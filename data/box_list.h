// Bounding boxes of ImageNet in the CSV format of process_bounding_boxes.py (TensorFlow's ImageNet builder).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dtrain/data/preprocess.h"

namespace dtrain::data {

// Boxes by image file name, from lines "n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940": xmin, ymin, xmax and ymax as
// fractions of the image. Throws Error(Fault::data) with the line number.
std::map<std::string, std::vector<NormalizedBox>> read_box_list(const std::string& path);

}  // namespace dtrain::data
