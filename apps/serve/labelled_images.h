// A validation set that people look through: images in files with what is known of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/coco/rle.h"

namespace dtrain::serve {

struct LabelledImage {
  struct Object {
    data::coco::Box box{};
    int64_t category_id = 0;
  };
  std::string path{}, name{};      // the name is that below the folder
  std::optional<int64_t> label{};  // the class, where there are no annotations
  std::vector<Object> objects{};   // those of the annotations that are no crowds
};

// With `annotations`, a file of COCO's form, its images below `folder`. Without, all JPEG and PNG files in
// folder/CLASS/, where CLASS is the number of a class, in the order of their names. Throws Error(Fault::data) where
// there are none.
std::vector<LabelledImage> read_labelled_images(const std::string& folder, const std::string& annotations);

}  // namespace dtrain::serve
