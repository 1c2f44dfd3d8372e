// Draws objects: masks, boxes and labels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/mask_rcnn/canvas.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/coco/results.h"

namespace dtrain::mask_rcnn {

struct DrawnObject {
  data::coco::BoundingBox box{};
  std::optional<data::coco::Rle> mask{};
  int64_t object_class = 0;  // for its colour; 0: none, such as a proposal
  std::string label{};       // "person 0.98"; empty: no label
};

// "person 0.98"
std::string score_label(const std::string& name, double score);

// Ground truth of images[image], for a picture of this size. Crowds are labelled.
std::vector<DrawnObject> annotated_objects(const data::coco::Annotations& truth, size_t image, int height, int width);

// Detections with at least this score, coloured by category index; other categories are skipped.
std::vector<DrawnObject> found_objects(std::span<const data::coco::Detection> found,
                                       const std::vector<data::coco::Category>& categories, double least_score);

// Draws small objects over large ones. Labels are at the upper left corners of their boxes, or nearby to stay within
// the picture and not to cover labels of earlier objects. Pass objects by descending importance: a label is skipped if
// there is no room, or if labels already cover a quarter of the picture. Boxes are clipped; non-finite boxes and boxes
// outside of the picture are skipped with their labels. Throws Error if a mask does not have the picture's size.
void draw_objects(Canvas& canvas, std::span<const DrawnObject> objects);

// A label of this size for a box; none if its width is 0.
struct LabelledBox {
  Rectangle box{};
  int width = 0, height = 0;
};

// Label positions, see draw_objects(); empty for skipped labels.
std::vector<Rectangle> place_labels(const Rectangle& picture, std::span<const LabelledBox> labels);

}  // namespace dtrain::mask_rcnn
