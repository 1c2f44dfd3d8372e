// Detections in pixels of the image files, by category.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/coco/paste.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/coco/results.h"
#include "dtrain/models/detection/detector.h"

namespace dtrain::detection {

// Image in a row of a batch.
struct ImagePlace {
  int64_t id = 0;
  double canvas_height = 0, canvas_width = 0;  // of the image on its canvas
  int64_t height = 0, width = 0;               // of its file
};

// Converts a box x1, y1, x2, y2 from canvas to file pixels.
data::coco::PasteBox box_in_file(const float* box, const ImagePlace& image);

// Detections per image, by descending score, with masks if predicted. An image with id -1 is padding.
std::vector<std::vector<data::coco::Detection>> detections_of(Context& context, const models::Detections& found,
                                                              const std::vector<ImagePlace>& images,
                                                              const std::vector<data::coco::Category>& categories,
                                                              data::coco::Paste paste);

// {"bbox": [x, y, w, h], "score", "category_id", "segmentation": {"size": [h, w], "counts"}}, COCO's results format.
nlohmann::ordered_json json_of(const data::coco::Detection& one);
// The same with the category's id as in the annotations, if that is a string.
nlohmann::ordered_json json_of(const data::coco::Detection& one, const std::vector<data::coco::Category>& categories);

}  // namespace dtrain::detection
