// Objects on a picture: their masks, boxes and labels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/mask_rcnn/canvas.h"
#include "data/coco/annotations.h"
#include "data/coco/results.h"

namespace dtrain::mask_rcnn {

struct DrawnObject {
  data::coco::Box box{};
  std::optional<data::coco::Rle> mask{};
  int64_t object_class = 0;  // by which it is coloured; 0 where it has none, such as a proposal
  std::string label{};       // "person 0.98"; none is drawn where it is empty
};

// "person 0.98"
std::string score_label(const std::string& name, double score);

// The ground truth of images[image], for a picture of this size. A crowd is labelled as such.
std::vector<DrawnObject> annotated_objects(const data::coco::Annotations& truth, size_t image, int height, int width);

// The detections with at least this score, coloured by the places of their categories, of which others are left out.
std::vector<DrawnObject> found_objects(std::span<const data::coco::Detection> found,
                                       const std::vector<data::coco::Category>& categories, double least_score);

// Draws small objects over large ones. Labels are at the upper left corners of their boxes, or near them where they
// would leave the picture or cover the label of an earlier object. So the objects that matter most come first: a label
// is left out where there is no room to read it, or where labels already cover a quarter of the picture. Boxes end at
// the edges of the picture; those that are not finite or have no pixel in it are left out with their labels. Throws
// Error where a mask is not of the picture's size.
void draw_objects(Canvas& canvas, std::span<const DrawnObject> objects);

// A label of this size, which belongs to a box; none where its width is 0.
struct LabelledBox {
  Rectangle box{};
  int width = 0, height = 0;
};

// Where labels go on a picture, see draw_objects(); empty where there is none.
std::vector<Rectangle> place_labels(const Rectangle& picture, std::span<const LabelledBox> labels);

}  // namespace dtrain::mask_rcnn
