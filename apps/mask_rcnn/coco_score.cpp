#include "apps/mask_rcnn/coco_score.h"

#include <array>

#include <fmt/format.h>

#include "libdtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

using data::coco::EvaluationOptions;

void add_scores(const data::coco::Annotations& truth, const std::vector<data::coco::Detection>& detections,
                const std::string& prefix, EvaluationOptions::Compare compare, int threads,
                std::vector<MetricValue>& values) {
  EvaluationOptions options;
  options.compare = compare;
  options.threads = threads;
  data::coco::Evaluator evaluator(truth, options);
  evaluator.add(detections);
  const auto statistics = evaluator.score().statistics();
  constexpr std::array kNames = {"IoU=0.5:0.95", "IoU=0.5", "IoU=0.75", "small", "medium", "large"};
  for (size_t i = 0; i < kNames.size(); ++i) values.push_back({prefix + "/" + kNames[i], statistics[i].value});
}

}  // namespace

void require_masks(const data::coco::Annotations& truth, const std::string& path) {
  for (const data::coco::Annotation& one : truth.annotations)
    if (std::holds_alternative<std::monostate>(one.segmentation))
      throw Error(Fault::data, concat(path, ": annotation ", one.id, " has no segmentation: masks cannot be scored"));
}

std::vector<MetricValue> coco_score(const data::coco::Annotations& truth,
                                    const std::vector<data::coco::Detection>& detections, const std::string& split,
                                    bool masks, int threads) {
  std::vector<MetricValue> values;
  add_scores(truth, detections, split + "-mAP(bbox)", EvaluationOptions::Compare::boxes, threads, values);
  if (masks) add_scores(truth, detections, split + "-mAP(segm)", EvaluationOptions::Compare::masks, threads, values);
  return values;
}

decltype(detection::TaskOptions::score) scorer(bool masks, Detected detected) {
  return [=](const detection::ValidationSplit& split, const std::vector<data::coco::Detection>& detections) {
    if (detected) detected(detections);
    return coco_score(*split.truth, detections, split.name, masks, /*threads=*/1);
  };
}

}  // namespace dtrain::mask_rcnn
