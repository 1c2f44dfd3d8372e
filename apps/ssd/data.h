// COCO for SSD300: 300x300 pixels, from TFRecords or from COCO's own files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/detection/detection_task.h"
#include "data/cache.h"

namespace dtrain::ssd {

// The training half of `folder`: the shards train-*-of-*, or, where there are none, the one split of
// annotations/instances_*.json whose name contains "train". Images without objects are left out; crowds and boxes
// without area are no objects. `augments` false: images as an evaluation sees them. Throws Error(Fault::data) where
// there is no such data, or no image has an object.
std::shared_ptr<data::DetectionDataset> open_training(const std::string& folder, bool augments,
                                                      const data::CacheOptions& cache);
// All images of the other half: the shards validation-*-of-*, or the split "val".
detection::ValidationSplit open_validation(const std::string& folder, const data::CacheOptions& cache);

// "COCO/AP", "COCO/AP50" ...: COCO's twelve numbers by pycocotools' short names.
std::vector<std::string> score_names();
// COCO's twelve numbers as score_names() says, and the first of them as "top_1_accuracy", which is what
// tf_cnn_benchmarks calls it, beside a "top_5_accuracy" of 0.
std::vector<MetricValue> score(const detection::ValidationSplit& split,
                               const std::vector<data::coco::Detection>& detections);

}  // namespace dtrain::ssd
