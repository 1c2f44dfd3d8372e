// Stepwise precision-recall curves against dense ones.
#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "dtrain/data/coco/evaluate.h"
#include "tests/data/coco/evaluated.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

// Interpolated precision at each recall threshold by pycocotools' algorithm: cumulative sums over all detections.
std::vector<double> dense_precision(std::span<const std::vector<Match>> images, const DetectionMetrics& evaluation,
                                    size_t category, size_t area, size_t limit, size_t iou_threshold) {
  struct Found {
    double score;
    bool right;
  };
  std::vector<Found> found;
  for (const std::vector<Match>& image : images)
    for (const Match& match : image)
      for (size_t i = 0; i < match.scores.size() && i < evaluation.options.max_detections[limit]; ++i) {
        const Match::Bits bits = match.bits[area * match.scores.size() + i];
        if (match.category == category && !(bits.ignored >> iou_threshold & 1))
          found.push_back({match.scores[i], (bits.matched >> iou_threshold & 1) != 0});
      }
  std::ranges::stable_sort(found, std::greater<>(), &Found::score);
  std::vector<double> precision, recall;
  double right = 0, wrong = 0;
  for (const Found& one : found) {
    (one.right ? right : wrong) += 1;
    precision.push_back(right / (wrong + right + std::numeric_limits<double>::epsilon()));
    recall.push_back(right / static_cast<double>(evaluation.truths[category * evaluation.options.areas.size() + area]));
  }
  for (size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  std::vector<double> values;
  for (const double threshold : evaluation.options.recall_thresholds) {
    const auto at = std::ranges::lower_bound(recall, threshold) - recall.begin();
    values.push_back(at == std::ssize(recall) ? 0 : precision[static_cast<size_t>(at)]);
  }
  return values;
}

TEST(EvaluateCurves, StepsEqualDenseCurvesBitForBit) {
  const nlohmann::json sets = nlohmann::json::parse(read_file(source_dir() / "tests/data/coco/evaluations.json"));
  for (const nlohmann::json& set : sets) {
    const Annotations truth = parse_annotations(set["truth"].dump(), "truth.json");
    Evaluator evaluator(truth);
    evaluator.add(parse_results(set["boxes"].dump(), "results.json"));
    const DetectionMetrics evaluation = evaluator.score();
    const std::vector<std::vector<Match>> images = evaluator.matches();
    const size_t areas = evaluation.options.areas.size(), last = evaluation.options.max_detections.size() - 1;
    double sum = 0;
    size_t count = 0;
    for (size_t t = 0; t < evaluation.options.iou_thresholds.size(); ++t) {
      std::vector<std::vector<double>> rows;  // of the first area range, for the mean in pycocotools' summation order
      for (size_t i = 0; i < truth.categories.size() * areas; ++i) {
        const size_t category = i / areas, area = i % areas;
        for (size_t limit = 0; limit <= last; ++limit) {
          const std::vector<double> dense = dense_precision(images, evaluation, category, area, limit, t);
          const bool absent = evaluation.truths[i] == 0;
          for (size_t r = 0; r < dense.size(); ++r)
            ASSERT_EQ(evaluation.curves[category].precision(evaluation.curve(area, limit, t), r),
                      absent ? -1 : dense[r]);
          if (!absent && area == 0 && limit == last) rows.push_back(dense);
        }
      }
      count += rows.size() * evaluation.options.recall_thresholds.size();
      for (size_t r = 0; r < evaluation.options.recall_thresholds.size(); ++r)
        for (const std::vector<double>& row : rows) sum += row[r];
    }
    EXPECT_EQ(evaluation.statistics()[0].value, count == 0 ? -1 : sum / static_cast<double>(count));
  }
}

// Dense arrays for 50,000 categories took 4.8 GB.
TEST(EvaluateCurves, CategoriesWithoutGroundTruthTakeNoCurves) {
  Annotations truth = objects({{0, {0, 0, 10, 10}}, {1, {0, 0, 150, 150}}});
  truth.annotations[1].category = 1;
  truth.categories.push_back({2, "other"});
  const std::vector<Detection> detections = {boxed(1, .9, {0, 0, 10, 9}), boxed(2, .8, {0, 0, 150, 150}, 2),
                                             boxed(2, .9, {0, 0, 9, 9}, 40'000)};
  const DetectionMetrics few = evaluate(truth, detections);
  for (int64_t id = 3; id <= 50'000; ++id) truth.categories.push_back({id, ""});
  const DetectionMetrics many = evaluate(truth, detections);
  EXPECT_EQ(values_of(many), values_of(few));
  for (size_t i = 0; i < many.curves.size(); ++i) {
    EXPECT_EQ(many.curves[i].recall.size(), i < 2 ? 10u * 4 * 3 : 0u) << i;
    EXPECT_LE(many.curves[i].steps.size(), i < 2 ? 10u * 4 * 3 : 0u) << i;  // one true positive: one step
  }
  EXPECT_EQ(many.average_precision(49'999), -1);
}

}  // namespace
}  // namespace dtrain::data::coco
