// ImageNet's raw archives as lists of labelled images that are read in place.
#pragma once

#include <string>
#include <vector>

#include "data/image_tree.h"

namespace dtrain::data {

// The images of an archive, without labels, sorted by class and name. A class is a member <class>.tar, as in
// ILSVRC2012_img_train.tar, or a folder of images; images in neither have the class "". What
// is_left_out() names is left out. An archive that holds train/<class>/ may hold other splits beside it: an image has
// its split then, and in a split without class folders the class ""; outside of all splits it has the path of its
// folder as its split, or "top-level". Throws Error(Fault::data) naming archive, member and offset.
std::vector<TreeImage> images_of_tar(const std::string& path);

// The classes of images, sorted.
std::vector<std::string> classes_of(const std::vector<TreeImage>& images);

}  // namespace dtrain::data
