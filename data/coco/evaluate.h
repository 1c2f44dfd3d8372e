// Average precision and recall of detections, as COCO defines them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/coco/annotations.h"
#include "data/coco/match.h"
#include "data/coco/results.h"

namespace dtrain::data::coco {

// `count` numbers from `first` to `last`, with the bits of numpy.linspace.
std::vector<double> linspace(double first, double last, size_t count);

struct EvaluationOptions {
  enum class Compare { boxes, masks };
  Compare compare = Compare::boxes;
  std::vector<double> iou_thresholds = linspace(.5, .95, 10);  // at most 64
  std::vector<double> recall_thresholds = linspace(0, 1, 101);
  std::vector<uint32_t> max_detections{1, 10, 100};  // of a category in an image, in ascending order
  std::vector<AreaRange> areas{{"all", 0, 1e10}, {"small", 0, 1024}, {"medium", 1024, 9216}, {"large", 9216, 1e10}};
  // A detection of which masks are compared has the area of its mask. With this it has that of its box, if it has one,
  // as in pycocotools where the first detection of a list has a box; one without a mask then has all pixels of its box.
  bool area_of_box = false;
  int threads = 1;  // they do not change the result
};

// One of the numbers by which detectors are compared.
struct Statistic {
  std::string name;          // "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"
  std::string title;         // as pycocotools prints it: "Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | ..."
  double value = -1;         // -1 where there is none
  std::string why_absent{};  // "no ground truth of area small", where there is none
};

// The precision-recall curves of one category, [areas][max detections][IoU thresholds] of them. Interpolated precision
// never rises with recall, so a curve is stored as its steps: memory grows with the detections that are right, not with
// the number of recall thresholds.
struct PrecisionRecall {
  struct Step {
    uint32_t end = 0;  // index of the first recall threshold beyond the step
    double precision = 0;
    bool operator==(const Step&) const = default;
  };
  std::vector<double> recall{};  // of each curve; -1 without ground truth in the range of areas, empty without any
  std::vector<size_t> ends{};    // of the steps of each curve
  std::vector<Step> steps{};     // beyond the last step of a curve precision is 0

  // Interpolated precision at a recall threshold, both by index; -1 without ground truth.
  double precision(size_t curve, size_t recall_threshold) const;
  bool operator==(const PrecisionRecall&) const = default;
};

// Precision and recall over all images.
struct Evaluation {
  EvaluationOptions options{};
  std::vector<Category> categories{};
  std::vector<uint64_t> truths{};         // [categories][areas] that count, which crowds do not
  std::vector<PrecisionRecall> curves{};  // [categories]

  // Index of a curve of PrecisionRecall.
  size_t curve(size_t area, size_t limit, size_t iou_threshold) const {
    return (area * options.max_detections.size() + limit) * options.iou_thresholds.size() + iou_threshold;
  }

  // The twelve numbers of COCO in its order: average precisions, then recalls, one of them for each of max_detections.
  // The last of these, 100 in COCO, is that of all others.
  std::vector<Statistic> statistics() const;
  // AP of one category over all IoU thresholds, in the first range of areas; -1 where it has no ground truth.
  double average_precision(size_t category) const;
};

// Ground truth, and what has been found so far. It may be copied, and scored by another thread than that which adds to
// the original.
class Evaluator {
 public:
  // Objects without a mask are left out where masks are compared. Throws Error where options make no sense.
  explicit Evaluator(const Annotations& truth, const EvaluationOptions& options = {});

  // Detections of equal scores count in the order in which they were added. Those of categories that are not in the
  // ground truth are left out. Throws Error(Fault::data) for an image that is not in it, a score that is not finite, a
  // detection without what is compared, and a mask that is not of its image's size; nothing of `detections` before the
  // bad one is taken back.
  void add(std::span<const Detection> detections);
  void add(const Detection& detection) { add(std::span(&detection, 1)); }

  Evaluation score() const;
  // What score() is made of: the matches of each image, in the order of the ground truth's images.
  std::vector<std::vector<Match>> matches() const;

 private:
  struct GroundTruth;
  Found found(const Detection& detection, const Image& image) const;

  EvaluationOptions options_;
  std::shared_ptr<const GroundTruth> truth_;
  std::vector<std::vector<Found>> found_;  // of each image
};

}  // namespace dtrain::data::coco
