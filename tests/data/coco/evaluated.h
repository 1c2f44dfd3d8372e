// Small sets of ground truth and detections, and their evaluation.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "dtrain/data/coco/evaluate.h"

namespace dtrain::data::coco {

inline std::vector<double> values_of(const DetectionMetrics& evaluation) {
  std::vector<double> values;
  for (const Statistic& one : evaluation.statistics()) values.push_back(one.value);
  return values;
}

inline DetectionMetrics evaluate(const Annotations& truth, std::span<const Detection> detections,
                                 const EvaluationOptions& options = {}) {
  Evaluator evaluator(truth, options);
  evaluator.add(detections);
  return evaluator.score();
}

inline Detection boxed(int64_t image, double score, const BoundingBox& box, int64_t category = 1) {
  return {image, category, score, box, {}};
}

// Ground truth of category 1 in images 1 and 2 of 200 x 200 pixels.
inline Annotations objects(const std::vector<std::pair<uint32_t, BoundingBox>>& boxes, size_t crowds = 0) {
  Annotations truth;
  truth.images = {{1, "1.jpg", 200, 200}, {2, "2.jpg", 200, 200}};
  truth.categories = {{1, "thing"}};
  truth.begins.resize(3, boxes.size());
  for (const auto& [image, box] : boxes) {
    Annotation& one = truth.annotations.emplace_back();
    one.image = image;
    one.box = box;
    one.area = box.width * box.height;
    one.is_crowd = truth.annotations.size() <= crowds;
    if (image == 0) truth.begins[1] = truth.annotations.size();
  }
  return truth;
}

}  // namespace dtrain::data::coco
