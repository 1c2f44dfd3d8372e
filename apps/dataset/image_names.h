// Names of the images of a split in one folder.
#pragma once

#include <vector>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::dataset {

// Makes names relative to the folder that all images are in, without a leading "../", and numbers the names of images
// listed twice, in order: a.jpg, a_2.jpg. A name without the extension of an image remains unique with any.
void place_in_one_folder(std::vector<data::coco::AnnotatedImage>& images);

}  // namespace dtrain::dataset
