// Bounding boxes of images in a text file, as process_bounding_boxes.py of TensorFlow's ImageNet builder writes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/preprocess.h"

namespace dtrain::data {

// The boxes of each image by the name of its file: a line "n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940" each, with
// xmin, ymin, xmax and ymax as fractions of the image. Throws Error(Fault::data) naming the line.
std::map<std::string, std::vector<Box>> read_box_list(const std::string& path);

}  // namespace dtrain::data
