// Scores of detections by COCO's rules, under the names that TensorPack gives them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/detection/detection_task.h"
#include "data/coco/annotations.h"
#include "data/coco/evaluate.h"
#include "data/coco/results.h"
#include "libdtrain/train/loss.h"

namespace dtrain::mask_rcnn {

// What people are told of objects of the annotations in `path` that have no mask and are left out where masks are
// scored; empty where all have one. Throws Error(Fault::data) where none has.
std::string check_masks(const data::coco::Annotations& truth, const std::string& path);

// "SPLIT-mAP(bbox)/IoU=0.5:0.95", ".../IoU=0.5", ".../IoU=0.75", ".../small", ".../medium" and ".../large", and the
// same for "mAP(segm)" where `masks`; -1 where COCO's evaluation has no number. `area_of_box` as in EvaluationOptions.
std::vector<MetricValue> coco_score(const data::coco::Annotations& truth,
                                    const std::vector<data::coco::Detection>& detections, const std::string& split,
                                    bool masks, bool area_of_box, int threads);

// The same as a task wants it, of one thread. `detected`, if there is one, is called with the detections first.
using Detected = std::function<void(const std::vector<data::coco::Detection>&)>;
decltype(detection::TaskOptions::score) scorer(bool masks, bool area_of_box, Detected detected = {});

}  // namespace dtrain::mask_rcnn
