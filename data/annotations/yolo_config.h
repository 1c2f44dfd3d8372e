// Class names and splits of a YOLO data set.
#pragma once

#include <string>
#include <vector>

#include "data/annotations/label_set.h"

namespace dtrain::data::annotations {

struct YoloConfig {
  std::string folder{};                // of the data set
  std::vector<std::string> classes{};  // by number
  std::vector<LabelFiles> splits{};    // items are images
  bool has_keypoints = false;          // numbers after the box of a line are keypoints
  coco::Findings findings{};
};

// From data.yaml (Ultralytics), obj.data (darknet, CVAT), or classes.txt or obj.names (labelImg). If a data.yaml names
// no split, and for classes.txt and obj.names, images are in images/SPLIT, SPLIT/images, SPLIT, or anywhere, for
// training. `place`: the folder, or the YAML file in it. Paths that are absolute or lead out of the folder are looked
// for in it by their ends. Throws Error(Fault::data).
YoloConfig read_yolo_config(const std::string& place);

}  // namespace dtrain::data::annotations
