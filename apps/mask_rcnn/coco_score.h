// COCO metrics of detections, with TensorPack's names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/detection/detection_task.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/coco/evaluate.h"
#include "dtrain/data/coco/results.h"
#include "dtrain/train/loss.h"

namespace dtrain::mask_rcnn {

// Notice about objects in the annotations `path` without a mask, which the mask metrics ignore; empty if all have one.
// Throws Error(Fault::data) if none has.
std::string check_masks(const data::coco::Annotations& truth, const std::string& path);

// "SPLIT-mAP(bbox)/IoU=0.5:0.95", ".../IoU=0.5", ".../IoU=0.75", ".../small", ".../medium" and ".../large", and the
// same for "mAP(segm)" if `masks`; -1 where COCO's metric is undefined. `area_of_box` as in EvaluationOptions.
std::vector<MetricValue> coco_score(const data::coco::Annotations& truth,
                                    const std::vector<data::coco::Detection>& detections, const std::string& split,
                                    bool masks, bool area_of_box, int threads);

// The same as a single-threaded callback for a task. `detected`, if given, is called with the detections first.
using Detected = std::function<void(const detection::ValidationSplit&, const std::vector<data::coco::Detection>&)>;
decltype(detection::TaskOptions::score) scorer(bool masks, bool area_of_box, Detected detected = {});

}  // namespace dtrain::mask_rcnn
