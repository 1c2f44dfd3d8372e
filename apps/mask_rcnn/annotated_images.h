// The images of a data set as pictures: where they are, what is drawn on them, and under which name.
#pragma once

#include <set>
#include <string>

#include "apps/mask_rcnn/draw_objects.h"
#include "data/coco/annotations.h"
#include "data/image.h"

namespace dtrain::mask_rcnn {

// Throws Error(Fault::data), which names the file, where it cannot be read or decoded, or is not of the size that the
// annotations state.
data::Image read_annotated_image(const std::string& folder, const data::coco::Image& image);

// The image with objects drawn on it.
data::Image drawn(const data::Image& image, std::span<const DrawnObject> objects);

// Names of pictures: the image's without folder and ending, and with its id where another one has that name already.
class PictureNames {
 public:
  std::string take(const data::coco::Image& image);

 private:
  std::set<std::string> taken_;
};

}  // namespace dtrain::mask_rcnn
