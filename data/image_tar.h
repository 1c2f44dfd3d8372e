// ImageNet's tar archives as lists of labelled images, read in place.
#pragma once

#include <string>
#include <vector>

#include "data/image_tree.h"

namespace dtrain::data {

// Images of an archive, unlabelled, sorted by class and name. A class is a member <class>.tar, as in
// ILSVRC2012_img_train.tar, or a folder of images; other images have class "". Skips names for which is_left_out() is
// true. An archive with train/<class>/ may have other splits beside it: images then have that split, with class "" in a
// split without class folders; images outside of all splits have their folder as split, or "top-level". Throws
// Error(Fault::data) with archive, member and offset.
std::vector<TreeImage> images_of_tar(const std::string& path);

// Unique classes of images, sorted.
std::vector<std::string> classes_of(const std::vector<TreeImage>& images);

}  // namespace dtrain::data
