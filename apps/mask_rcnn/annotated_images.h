// The images of a data set as pictures: where they are, what is drawn on them, and under which name.
#pragma once

#include <set>
#include <string>

#include "apps/mask_rcnn/draw_objects.h"
#include "data/coco/annotations.h"
#include "data/image.h"

namespace dtrain::mask_rcnn {

// As data::DetectionDataset sees it: turned by EXIF where `orientation` says so, but as it is stored where the
// annotations state the stored size. Throws Error(Fault::data), which names the file, where it cannot be read or
// decoded, or is of neither size.
data::Image read_annotated_image(const std::string& folder, const data::coco::Image& image,
                                 data::Orientation orientation);

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
