// An evaluation as a folder to look at: index.html, and a picture of each image that it shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/mask_rcnn/gallery.h"
#include "data/coco/annotations.h"
#include "data/coco/evaluate.h"
#include "data/coco/results.h"
#include "data/image.h"

namespace dtrain::mask_rcnn {

struct EvaluationGallery {
  std::string folder{}, title{};
  std::vector<std::string> notes{};  // lines below the title, before those about the evaluation
  std::string images{};              // the folder of the images
  data::Orientation orientation = data::Orientation::ignore;  // see read_annotated_image()
  bool boxes = true, masks = false;  // what is compared; images are ranked by boxes where both are
  double visible_score = 0.5;        // detections of lower scores are neither drawn nor counted
  int64_t most = 12;                 // images of each end
  int threads = 1;
};

// Makes the folder where there is none, for those who want to know before a long evaluation that it can be made.
// Throws Error(Fault::config) where a file is in the way, Error(Fault::resource) where the disk fails.
void make_gallery_folder(const std::string& folder);

// Scores the detections and writes pictures of the images of the lowest and of the highest F1 at IoU 0.5, ground truth
// beside results, then the page. Throws Error(Fault::data) where an image cannot be read or has not the size that the
// annotations state, Error(Fault::resource) where a file cannot be written.
void write_evaluation_gallery(const EvaluationGallery& options, const data::coco::Annotations& truth,
                              const std::vector<data::coco::Detection>& detections);

}  // namespace dtrain::mask_rcnn
