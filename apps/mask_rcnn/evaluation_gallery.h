// Gallery of an evaluation: index.html, and a picture per image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/mask_rcnn/gallery.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/coco/evaluate.h"
#include "dtrain/data/coco/results.h"
#include "dtrain/data/image.h"

namespace dtrain::mask_rcnn {

struct EvaluationGallery {
  std::string folder{}, title{};
  std::vector<std::string> notes{};                           // lines below the title, before the evaluation's
  std::string images{};                                       // image folder
  data::Orientation orientation = data::Orientation::ignore;  // see read_annotated_image()
  bool boxes = true, masks = false;                           // IoU types; images are ranked by boxes if both
  double visible_score = 0.5;                                 // minimum score of detections that are drawn and counted
  int64_t most = 12;                                          // number of worst and of best images
  int threads = 1;
};

// Creates the folder, to fail before a long evaluation. Throws Error(Fault::config) if a file is in the way,
// Error(Fault::resource) on disk errors.
void make_gallery_folder(const std::string& folder);

// Evaluates the detections and writes pictures of the images with the lowest and highest F1 at IoU 0.5, ground truth
// beside detections, then the page. Throws Error(Fault::data) if an image cannot be read or its size differs from the
// annotations, Error(Fault::resource) if a file cannot be written.
void write_evaluation_gallery(const EvaluationGallery& options, const data::coco::Annotations& truth,
                              const std::vector<data::coco::Detection>& detections);

}  // namespace dtrain::mask_rcnn
