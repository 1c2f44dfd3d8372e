// Images of a data set with objects drawn on them, and their file names.
#pragma once

#include <set>
#include <string>

#include "apps/mask_rcnn/draw_objects.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/image.h"

namespace dtrain::mask_rcnn {

// Decodes like data::DetectionDataset: applies the EXIF orientation if `orientation` says so, unless the annotations
// state the stored size. Throws Error(Fault::data) with the file name if it cannot be read or decoded, or has neither
// size.
data::Image read_annotated_image(const std::string& folder, const data::coco::AnnotatedImage& image,
                                 data::Orientation orientation);

// The image with objects drawn on it.
data::Image drawn(const data::Image& image, std::span<const DrawnObject> objects);

// File names of pictures: the image's base name without extension; with the id appended if it is taken.
class PictureNames {
 public:
  std::string take(const data::coco::AnnotatedImage& image);

 private:
  std::set<std::string> taken_;
};

}  // namespace dtrain::mask_rcnn
