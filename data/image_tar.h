// ImageNet's raw archives as lists of labelled images that are read in place.
#pragma once

#include <string>
#include <vector>

#include "data/image_tree.h"

namespace dtrain::data {

// The images of an archive, without labels, sorted by class and name. A class is a member <class>.tar, as in
// ILSVRC2012_img_train.tar, or a folder of images; images in neither have the class "". Hidden files are left out.
// Throws Error(Fault::data) naming archive, member and offset.
std::vector<TreeImage> images_of_tar(const std::string& path);

// The classes of images, sorted.
std::vector<std::string> classes_of(const std::vector<TreeImage>& images);

}  // namespace dtrain::data
