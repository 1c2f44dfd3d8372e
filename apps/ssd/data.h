// COCO for SSD300: 300x300 pixels, from TFRecords or COCO's own files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/detection/detection_task.h"
#include "dtrain/data/cache.h"

namespace dtrain::ssd {

// Training data of `folder`: the shards train-*-of-*, or else the only split of annotations/instances_*.json whose name
// contains "train". Skips images without objects; crowds and boxes without area do not count as objects. `augments`
// false: preprocessing of evaluation. Throws Error(Fault::data) if there is no such data, or no image has an object.
std::shared_ptr<data::DetectionDataset> open_training(const std::string& folder, bool augments,
                                                      const data::CacheOptions& cache);
// All validation images: the shards validation-*-of-*, or the split "val".
detection::ValidationSplit open_validation(const std::string& folder, const data::CacheOptions& cache);

// "COCO/AP", "COCO/AP50" ...: COCO's twelve numbers by pycocotools' short names.
std::vector<std::string> score_names();
// COCO's twelve metrics named by score_names(). As in tf_cnn_benchmarks, the first is also "top_1_accuracy", and
// "top_5_accuracy" is 0.
std::vector<MetricValue> score(const detection::ValidationSplit& split,
                               const std::vector<data::coco::Detection>& detections);

}  // namespace dtrain::ssd
