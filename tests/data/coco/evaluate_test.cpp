// COCO metrics against pycocotools, whose results are in evaluations.json (see make_evaluations.py) and in the
// published sample.
#include "dtrain/data/coco/evaluate.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "tests/data/coco/evaluated.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

using Json = nlohmann::json;
using Compare = EvaluationOptions::Compare;

TEST(Evaluate, RandomSetsMatchPycocotools) {
  const Json sets = Json::parse(read_file(source_dir() / "tests/data/coco/evaluations.json"));
  for (const Json& set : sets)
    for (const char* kind : {"boxes", "masks"}) {
      EvaluationOptions options;
      options.compare = std::string(kind) == "boxes" ? Compare::boxes : Compare::masks;
      const Annotations truth = parse_annotations(set["truth"].dump(), "truth.json");
      const DetectionMetrics evaluation = evaluate(truth, parse_results(set[kind].dump(), "results.json"), options);
      std::vector<double> values = values_of(evaluation);
      for (size_t i = 0; i < truth.categories.size(); ++i) values.push_back(evaluation.average_precision(i));
      const std::vector<double> expected = set["expected"][kind];
      ASSERT_EQ(values.size(), expected.size());
      for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-9) << kind << ' ' << i;
    }
}

// Published metrics of COCO's API, three digits each.
std::vector<double> published(const std::string& text, const std::string& type) {
  static const std::regex kNumber(R"(= (-?[0-9.]+)\n)");
  const size_t begin = text.find("type=" + type), end = text.find("type=", begin + 1);
  const std::string part = text.substr(begin, end - begin);
  std::vector<double> numbers;
  for (std::sregex_iterator at(part.begin(), part.end(), kNumber), last; at != last; ++at)
    numbers.push_back(std::stod((*at)[1]));
  return numbers;
}

TEST(Evaluate, SampleMatchesPycocotoolsAndPublication) {
  const std::filesystem::path folder = test_data("coco_eval");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  const Annotations truth = read_annotations(folder / "instances_val2014_100.json");
  const Json all = Json::parse(read_file(folder / "pycocotools_stats.json"));
  const std::string text = read_file(folder / "val2014_fake_eval_res.txt");
  for (const std::string type : {"bbox", "segm"}) {
    EvaluationOptions options;
    options.compare = type == "bbox" ? Compare::boxes : Compare::masks;
    options.threads = 2;
    const auto detections = read_results(folder / ("instances_val2014_fake" + type + "100_results.json"));
    const DetectionMetrics evaluation = evaluate(truth, detections, options);
    const Json& expected = all.at("val2014_100/fake" + type + "100");
    const std::vector<double> numbers = published(text, type);
    ASSERT_EQ(numbers.size(), 12u);
    const std::vector<Statistic> statistics = evaluation.statistics();
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(statistics[i].value, expected["stats"][i].get<double>(), 1e-9) << statistics[i].name;
      EXPECT_NEAR(statistics[i].value, numbers[i], .0005) << statistics[i].name;
    }
    for (size_t i = 0; i < truth.categories.size(); ++i) {
      const double expected_precision = expected["per_category_AP"].value(std::to_string(truth.categories[i].id), -1.0);
      EXPECT_NEAR(evaluation.average_precision(i), expected_precision, 1e-9) << truth.categories[i].name;
    }
  }
}

TEST(Evaluate, IndependentOfThreadsAndBatches) {
  const Json sets = Json::parse(read_file(source_dir() / "tests/data/coco/evaluations.json"));
  const Annotations truth = parse_annotations(sets[0]["truth"].dump(), "truth.json");
  const std::vector<Detection> detections = parse_results(sets[0]["boxes"].dump(), "results.json");
  const DetectionMetrics whole = evaluate(truth, detections);
  EvaluationOptions options;
  options.threads = 7;
  Evaluator evaluator(truth, options);
  for (const Detection& detection : detections) evaluator.add(detection);
  const Evaluator copy = evaluator;
  evaluator.add(detections);
  DetectionMetrics scored;
  std::thread([&] { scored = copy.score(); }).join();
  EXPECT_EQ(scored.curves, whole.curves);
  EXPECT_EQ(scored.truths, whole.truths);
  EXPECT_NE(evaluator.score().curves, whole.curves);
}

TEST(Evaluate, PerfectDetectionsArePerfect) {
  const Annotations truth = objects({{0, {0, 0, 10, 10}}, {0, {50, 50, 40, 40}}, {1, {0, 0, 150, 150}}});
  const std::vector<Detection> detections = {boxed(1, .9, {0, 0, 10, 10}), boxed(1, .9, {50, 50, 40, 40}),
                                             boxed(2, .9, {0, 0, 150, 150})};
  for (const Statistic& one : evaluate(truth, detections).statistics())
    EXPECT_NEAR(one.value, one.name == "AR1" ? 2. / 3 : 1, 1e-12) << one.name;
}

TEST(Evaluate, ExplainsAbsentStatistics) {
  const DetectionMetrics small = evaluate(objects({{0, {0, 0, 10, 10}}}), {});
  const std::vector<Statistic> statistics = small.statistics();
  ASSERT_EQ(statistics.size(), 12u);
  EXPECT_EQ(statistics[0].name, "AP");
  EXPECT_EQ(statistics[0].title, "Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ]");
  EXPECT_EQ(statistics[6].title, "Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ]");
  EXPECT_EQ(statistics[0].value, 0);
  EXPECT_EQ(statistics[0].why_absent, "");
  EXPECT_EQ(statistics[3].value, 0);
  EXPECT_EQ(statistics[5].name, "APl");
  EXPECT_EQ(statistics[5].value, -1);
  EXPECT_EQ(statistics[5].why_absent, "no ground truth of area large");
  for (const Statistic& one : evaluate(objects({{0, {0, 0, 10, 10}}}, 1), {}).statistics()) {
    EXPECT_EQ(one.value, -1);
    EXPECT_EQ(one.why_absent, "no ground truth");
  }
  EvaluationOptions options;
  options.iou_thresholds = {.5, .6};
  options.areas = {{"all", 0, 1e10}};
  const std::vector<Statistic> few = evaluate(objects({{0, {0, 0, 10, 10}}}), {}, options).statistics();
  EXPECT_EQ(few[1].value, 0);
  EXPECT_EQ(few[2].why_absent, "0.75 is none of the IoU thresholds");
  EXPECT_EQ(few[3].why_absent, "no range of areas has the name small");
}

TEST(Evaluate, CrowdsAreIgnoredAndMatchRepeatedly) {
  const Annotations truth = objects({{0, {0, 0, 100, 100}}, {0, {150, 150, 40, 40}}}, 1);
  const std::vector<Detection> within = {boxed(1, .9, {0, 0, 20, 20}), boxed(1, .8, {30, 30, 20, 20}),
                                         boxed(1, .7, {150, 150, 40, 40})};
  EXPECT_NEAR(evaluate(truth, within).average_precision(0), 1, 1e-12);
  std::vector<Detection> outside = within;
  outside[0].box = BoundingBox{0, 150, 20, 20};
  EXPECT_NEAR(evaluate(truth, outside).average_precision(0), .5, 1e-12);
}

TEST(Evaluate, LimitsDetectionsPerImage) {
  const Annotations truth = objects({{0, {0, 0, 50, 50}}, {0, {100, 100, 50, 50}}});
  std::vector<Detection> detections;
  for (int i = 0; i < 5; ++i) detections.push_back(boxed(1, .9, {0, 100, 50, 50}));
  detections.push_back(boxed(1, .9, {0, 0, 50, 50}));
  detections.push_back(boxed(1, .9, {100, 100, 50, 50}));
  EvaluationOptions options;
  options.max_detections = {5, 6, 7};
  const std::vector<Statistic> statistics = evaluate(truth, detections, options).statistics();
  EXPECT_EQ(statistics[6].name, "AR5");
  EXPECT_EQ(statistics[6].value, 0);
  EXPECT_EQ(statistics[7].value, .5);
  EXPECT_EQ(statistics[8].value, 1);
}

// Id 0 is valid here; pycocotools treats it as "no match".
TEST(Evaluate, IdsMayBeZero) {
  Annotations truth = objects({{0, {0, 0, 50, 50}}});
  truth.images[0].id = 0;
  truth.categories[0].id = 0;
  EXPECT_NEAR(evaluate(truth, std::vector{boxed(0, .5, {0, 0, 50, 50}, 0)}).average_precision(0), 1, 1e-12);
}

TEST(Evaluate, AreasOfMasksAndBoxes) {
  Annotations truth = objects({{0, {0, 0, 20, 20}}});
  truth.annotations[0].segmentation = Polygons{{0, 0, 20, 0, 20, 20, 0, 20}};
  Detection wrong{1, 1, .9, BoundingBox{0, 0, 100, 100},
                  from_polygon(std::vector<double>{90, 90, 95, 90, 95, 95}, 200, 200)};
  Detection right{1, 1, .8, {}, from_polygon(std::vector<double>{0, 0, 20, 0, 20, 20, 0, 20}, 200, 200)};
  EvaluationOptions options;
  options.compare = Compare::masks;
  const std::vector<Detection> detections = {wrong, right};
  EXPECT_NEAR(evaluate(truth, detections, options).statistics()[3].value, .5, 1e-12);
  options.area_of_box = true;  // the false positive is not small then
  EXPECT_NEAR(evaluate(truth, detections, options).statistics()[3].value, 1, 1e-12);
  EXPECT_NEAR(evaluate(truth, std::vector{right}).average_precision(0), 1, 1e-12);  // by the bounding boxes of masks
}

TEST(Evaluate, IdZeroConsumesItsDetection) {
  Annotations truth = objects({{0, {0, 0, 50, 50}}, {0, {100, 100, 50, 50}}});
  truth.annotations[0].never_matches = true;
  const std::vector<Detection> detections = {boxed(1, .9, {0, 0, 50, 50}), boxed(1, .8, {100, 100, 50, 50})};
  // The first detection is a false positive, the second matches one of two ground truths: precision 1/2 up to recall
  // 1/2.
  EXPECT_NEAR(evaluate(truth, detections).average_precision(0), .5 * 51 / 101, 1e-12);
}

TEST(Evaluate, NanMatchesPycocotools) {
  const double nan = std::nan("");
  const Annotations truth = objects({{0, {0, 0, 50, 50}}});
  // A NaN width does not limit the intersection.
  EXPECT_NEAR(evaluate(truth, std::vector{boxed(1, .5, {0, 0, nan, 50})}).average_precision(0), 1, 1e-12);
  EXPECT_EQ(evaluate(truth, std::vector{boxed(1, .5, {60, 60, -1e-5, 5})}).average_precision(0), 0);
}

TEST(Evaluate, PolygonsAreRasterised) {
  Annotations truth = objects({{0, {0, 0, 20, 20}}, {0, {100, 100, 20, 20}}});
  truth.annotations[0].segmentation = Polygons{{0, 0, 20, 0, 20, 20, 0, 20}};  // the other one has none, and is skipped
  EvaluationOptions options;
  options.compare = Compare::masks;
  const Detection outlined{1, 1, .9, {}, {}, {{0, 0, 20, 0, 20, 20, 0, 20, 5}}};
  EXPECT_NEAR(evaluate(truth, std::vector{outlined}, options).average_precision(0), 1, 1e-12);
  options.area_of_box = true;
  EXPECT_NEAR(evaluate(truth, std::vector{boxed(1, .9, {0, 0, 20, 20})}, options).average_precision(0), 1, 1e-12);
  const Detection far{1, 1, .9, {}, {}, {{0, 0, 1e300, 0, 20, 20}}};
  EXPECT_EQ(evaluate(truth, std::vector{far}, options).average_precision(0), 0);
}

TEST(Evaluate, RejectsIncomparableDetections) {
  const Annotations truth = objects({{0, {0, 0, 20, 20}}});
  EvaluationOptions masks;
  masks.compare = Compare::masks;
  Evaluator boxes(truth);
  Evaluator shapes(objects({}), masks);
  const auto refused = [](Evaluator& evaluator, const Detection& detection, const std::string& part) {
    expect_error([&] { evaluator.add(detection); }, Fault::data, part);
  };
  refused(boxes, boxed(7, .5, {}), "a detection of image 7, which is not one of the ground truth's 2");
  refused(boxes, boxed(1, std::nan(""), {}), "a detection of image 1: its score is nan");
  refused(boxes, {1, 1, .5, {}, {}}, "a detection of image 1: it has neither box nor mask");
  refused(shapes, boxed(1, .5, {}), "a detection of image 1: it has no mask");
  refused(shapes, {1, 1, .5, {}, Rle{2, 2, {4}}}, "a mask of 2 x 2 pixels, expected 200 x 200");
  refused(shapes, {1, 1, .5, {}, Rle{200, 200, {4}}}, "RLE of 4 pixels for a mask of 200 x 200");
  const auto bad = [&](auto change, const std::string& part) {
    EvaluationOptions options;
    change(options);
    expect_error([&] { Evaluator(truth, options); }, Fault::config, part);
  };
  bad([](EvaluationOptions& o) { o.iou_thresholds.clear(); }, "0 IoU thresholds");
  bad([](EvaluationOptions& o) { o.iou_thresholds.assign(65, .5); }, "65 IoU thresholds");
  bad([](EvaluationOptions& o) { o.iou_thresholds = {1.5}; }, "an IoU threshold of 1.5");
  bad([](EvaluationOptions& o) { o.recall_thresholds = {1, 0}; }, "recall thresholds");
  bad([](EvaluationOptions& o) { o.max_detections = {10, 1}; }, "max_detections");
  bad([](EvaluationOptions& o) { o.areas.clear(); }, "no ranges of areas");
  bad([](EvaluationOptions& o) { o.threads = 0; }, "0 threads");
}

}  // namespace
}  // namespace dtrain::data::coco
