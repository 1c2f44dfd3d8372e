// COCO metrics: average precision and recall of detections.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/coco/results.h"

namespace dtrain::data::coco {

// numpy.linspace(first, last, count), bit for bit.
std::vector<double> linspace(double first, double last, size_t count);

// Inclusive range of object areas, in pixels.
struct AreaRange {
  std::string name{};
  double least = 0, most = 1e10;
};

struct EvaluationOptions {
  enum class Compare { boxes, masks };
  Compare compare = Compare::boxes;
  std::vector<double> iou_thresholds = linspace(.5, .95, 10);  // at most 64
  std::vector<double> recall_thresholds = linspace(0, 1, 101);
  std::vector<uint32_t> max_detections{1, 10, 100};  // per category and image, ascending
  std::vector<AreaRange> areas{{"all", 0, 1e10}, {"small", 0, 1024}, {"medium", 1024, 9216}, {"large", 9216, 1e10}};
  // When masks are compared, a detection's area is that of its box if it has one, as in pycocotools if the first
  // detection of a list has a box; else the area of its mask. A detection without a mask then covers its whole box.
  bool area_of_box = false;
  int threads = 1;  // does not affect the result
};

// One of the summary metrics.
struct Statistic {
  std::string name;          // "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"
  std::string title;         // as pycocotools prints it: "Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | ..."
  double value = -1;         // -1 if undefined
  std::string why_absent{};  // reason for -1: "no ground truth of area small"
};

// Precision-recall curves of one category, [areas][max detections][IoU thresholds]. Interpolated precision never
// increases with recall, so a curve is stored as steps: memory grows with the number of true positives, not of recall
// thresholds.
struct PrecisionRecall {
  struct Step {
    uint32_t end = 0;  // first recall threshold beyond the step
    double precision = 0;
    bool operator==(const Step&) const = default;
  };
  std::vector<double> recall{};  // per curve; -1 without ground truth in the area range, empty without any
  std::vector<size_t> ends{};    // end of each curve's steps
  std::vector<Step> steps{};     // precision is 0 beyond the last step

  // Interpolated precision at the recall threshold with this index; -1 without ground truth.
  double precision(size_t curve, size_t recall_threshold) const;
  bool operator==(const PrecisionRecall&) const = default;
};

// Precision and recall over all images.
struct DetectionMetrics {
  EvaluationOptions options{};
  std::vector<Category> categories{};
  std::vector<uint64_t> truths{};         // [categories][areas], without crowds
  std::vector<PrecisionRecall> curves{};  // [categories]

  // Index of a curve of PrecisionRecall.
  size_t curve(size_t area, size_t limit, size_t iou_threshold) const {
    return (area * options.max_detections.size() + limit) * options.iou_thresholds.size() + iou_threshold;
  }

  // The twelve COCO metrics in order: average precisions, then recalls, with one recall per entry of max_detections.
  // All other metrics use the last entry, 100 in COCO.
  std::vector<Statistic> statistics() const;
  // AP of one category over all IoU thresholds in the first area range; -1 without ground truth.
  double average_precision(size_t category) const;
};

// Matches of one category in one image. Bit i of a mask belongs to IoU threshold i.
struct Match {
  // State of a detection in one area range. Ignored detections count neither as true nor as false positives.
  struct Bits {
    uint64_t matched = 0, ignored = 0;
  };

  uint32_t category = 0;
  std::vector<double> scores{};    // descending
  std::vector<Bits> bits{};        // [areas * detections]
  std::vector<uint32_t> truths{};  // [areas] ground truths that are not ignored
};

struct Found;  // detection, prepared for matching

// Ground truth and detections so far. A copy may be scored by another thread while detections are added to the
// original.
class Evaluator {
 public:
  // Skips objects without a mask when masks are compared. Throws Error for invalid options.
  explicit Evaluator(const Annotations& truth, const EvaluationOptions& options = {});
  Evaluator(const Evaluator& other);
  ~Evaluator();

  // Detections of equal score keep the order in which they were added. Unknown categories are skipped. Throws
  // Error(Fault::data) for an unknown image, a non-finite score, a detection without the box or mask to compare, and a
  // mask of another size than its image; detections before the invalid one stay added.
  void add(std::span<const Detection> detections);
  void add(const Detection& detection) { add(std::span(&detection, 1)); }

  DetectionMetrics score() const;
  // Matches per image, in the order of the ground truth's images: the input of score().
  std::vector<std::vector<Match>> matches() const;

 private:
  struct GroundTruth;
  Found found(const Detection& detection, const AnnotatedImage& image) const;

  EvaluationOptions options_;
  std::shared_ptr<const GroundTruth> truth_;
  std::vector<std::vector<Found>> found_;  // of each image
};

// Deprecated name, removed with the next minor version: docs/migration.md.
using Evaluation [[deprecated("renamed: DetectionMetrics")]] = DetectionMetrics;

}  // namespace dtrain::data::coco
