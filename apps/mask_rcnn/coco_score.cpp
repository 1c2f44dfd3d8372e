#include "apps/mask_rcnn/coco_score.h"

#include <array>

#include <fmt/format.h>

#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

using data::coco::EvaluationOptions;

void add_scores(const data::coco::Annotations& truth, const std::vector<data::coco::Detection>& detections,
                const std::string& prefix, const EvaluationOptions& options, std::vector<MetricValue>& values) {
  data::coco::Evaluator evaluator(truth, options);
  evaluator.add(detections);
  const auto statistics = evaluator.score().statistics();
  constexpr std::array kNames = {"IoU=0.5:0.95", "IoU=0.5", "IoU=0.75", "small", "medium", "large"};
  for (size_t i = 0; i < kNames.size(); ++i) values.push_back({prefix + "/" + kNames[i], statistics[i].value});
}

}  // namespace

std::string check_masks(const data::coco::Annotations& truth, const std::string& path) {
  uint64_t without = 0;
  const data::coco::Annotation* first = nullptr;
  for (const data::coco::Annotation& one : truth.annotations) {
    const data::coco::AnnotatedImage& image = truth.images[one.image];
    if (image.width == 0)
      throw Error(Fault::data, concat(path, ": image ", image.id, " has no width and height: masks cannot be scored"));
    if (one.segmentation.index() == 0 && without++ == 0) first = &one;
  }
  if (!first) return {};
  if (without == truth.annotations.size())
    throw Error(Fault::data, concat(path, ": annotation ", first->id,
                                    " has no segmentation, nor has any other: masks "
                                    "cannot be scored"));
  return concat(path, ": objects without a mask, ignored by mask metrics: ", without, " (first: annotation ", first->id,
                ")");
}

std::vector<MetricValue> coco_score(const data::coco::Annotations& truth,
                                    const std::vector<data::coco::Detection>& detections, const std::string& split,
                                    bool masks, bool area_of_box, int threads) {
  std::vector<MetricValue> values;
  EvaluationOptions options;
  options.threads = threads;
  add_scores(truth, detections, split + "-mAP(bbox)", options, values);
  options.compare = EvaluationOptions::Compare::masks;
  options.area_of_box = area_of_box;
  if (masks) add_scores(truth, detections, split + "-mAP(segm)", options, values);
  return values;
}

decltype(detection::TaskOptions::score) scorer(bool masks, bool area_of_box, Detected detected) {
  return [=](const detection::ValidationSplit& split, const std::vector<data::coco::Detection>& detections) {
    if (detected) detected(split, detections);
    return coco_score(*split.truth, detections, split.name, masks, area_of_box, /*threads=*/1);
  };
}

}  // namespace dtrain::mask_rcnn
