// An image with labelled objects, and the policy for objects that cannot be used.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/detection_geometry.h"

namespace dtrain::data::annotations {

struct LabelledObject {
  std::string class_name{};
  std::string title{};  // "Annotations/000005.xml: object 3"
  coco::BoundingBox box{};
  coco::Segmentation segmentation{};
  double area = 0;  // 0: of the segmentation or of the box
  bool is_crowd = false;
};

struct LabelledImage {
  std::string file_name{};  // relative to the folder of the data set
  std::string embedded{};   // annotation file that holds the bytes of the image as base64; empty: `file_name` is a file
  ImageSize size{};
  std::vector<LabelledObject> objects{};
  coco::Findings findings{};

  // Adds an object, or the finding why it cannot be used: by the rules of COCO's annotations, and without width or
  // height, or wholly outside of the image. Computes a missing area. `size` must be set.
  void add(LabelledObject object);
};

// Bounding box of polygons with at least one corner.
coco::BoundingBox bounds(const coco::Polygons& polygons);

// Number of a text, which may be "nan" or "inf"; NaN if it is no number.
double number_of(std::string_view text);

// Whether a relative path, with forward slashes, stays below the folder that it starts from.
bool stays_inside(std::string_view path);
// The path without "." and "x/.." parts.
std::string normal_path(const std::string& path);

// Size of the upright image in a file, from its header. Throws Error(Fault::data).
ImageSize measured_size(const std::string& path);

}  // namespace dtrain::data::annotations
