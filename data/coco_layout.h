// Files of data sets with COCO annotations.
#pragma once

#include <string>
#include <vector>

namespace dtrain::data {

// Names of the splits in a folder, sorted: NAME of annotations/instances_NAME.json (COCO, CVAT) and of
// NAME/_annotations.coco.json (Roboflow); "train" for _annotations.coco.json in the folder itself. Empty if there are
// none or the folder cannot be listed.
std::vector<std::string> coco_splits(const std::string& folder);

// Annotation file of a split: that of COCO unless only Roboflow's exists.
std::string coco_annotations(const std::string& folder, const std::string& split);

// Folder of the images of a split, the first that exists: NAME, images/NAME, NAME without its year (train for
// train2017), images, or the folder itself beside Roboflow's annotations; else "".
std::string coco_images(const std::string& folder, const std::string& split);

}  // namespace dtrain::data
