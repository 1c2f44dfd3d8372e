// What a detector has found, in pixels of the images' files and by their categories.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/coco/annotations.h"
#include "data/coco/paste.h"
#include "data/coco/results.h"
#include "models/detection/detector.h"

namespace dtrain::detection {

// Of the image in a row of a batch.
struct ImagePlace {
  int64_t id = 0;
  double canvas_height = 0, canvas_width = 0;  // of the image on its canvas
  int64_t height = 0, width = 0;               // of its file
};

// A box x1, y1, x2, y2 on the canvas in pixels of the file.
data::coco::PasteBox box_in_file(const float* box, const ImagePlace& image);

// The detections of each image, by descending score, with masks where there are some. An image of id -1 is no sample.
std::vector<std::vector<data::coco::Detection>> detections_of(Context& context, const models::Detections& found,
                                                              const std::vector<ImagePlace>& images,
                                                              const std::vector<data::coco::Category>& categories,
                                                              data::coco::Paste paste);

// {"bbox": [x, y, w, h], "score", "category_id", "segmentation": {"size": [h, w], "counts"}}, as COCO's results.
nlohmann::ordered_json json_of(const data::coco::Detection& one);
// The same with the category's id as it stands in the annotations, where that is a string.
nlohmann::ordered_json json_of(const data::coco::Detection& one, const std::vector<data::coco::Category>& categories);

}  // namespace dtrain::detection
