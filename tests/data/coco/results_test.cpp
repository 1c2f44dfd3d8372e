// Result files: round trips and errors.
#include "dtrain/data/coco/results.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

std::string written(const std::vector<Detection>& detections) {
  std::string text;
  ResultWriter writer([&](std::string_view piece) { text += piece; });
  for (const Detection& detection : detections) writer.add(detection);
  writer.finish();
  return text;
}

void expect_same(const std::vector<Detection>& a, const std::vector<Detection>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].image_id, b[i].image_id);
    EXPECT_EQ(a[i].category_id, b[i].category_id);
    EXPECT_EQ(a[i].score, b[i].score);
    EXPECT_EQ(a[i].box, b[i].box);
    EXPECT_EQ(a[i].mask, b[i].mask);
    EXPECT_EQ(a[i].polygons, b[i].polygons);
  }
}

TEST(Results, RoundTrip) {
  const Rle mask{9, 20, {44, 136}};
  EXPECT_EQ(to_text(mask)[0], '\\');  // must be escaped in JSON
  const std::vector<Detection> detections = {{42, 18, .236, BoundingBox{258.15, 41.29, 348.26, 243.5}, {}},
                                             {0, 1, 1e-20, {}, mask},
                                             {5, 1, .5, {}, {}, {{1, 2.5, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}}},
                                             {INT64_MAX, -3, 1.0 / 3, BoundingBox{0, -1, 1e8, 3}, mask}};
  const std::string text = written(detections);
  EXPECT_EQ(text.substr(0, text.find('\n') + 1),
            "[{\"image_id\": 42, \"category_id\": 18, \"bbox\": [258.15,41.29,348.26,243.5], \"score\": 0.236},\n");
  EXPECT_TRUE(contains(text, R"("segmentation": {"size": [9, 20], "counts": ")")) << text;
  EXPECT_EQ(nlohmann::json::parse(text)[1]["segmentation"]["counts"].get<std::string>(), to_text(mask));
  expect_same(parse_results(text, "results.json"), detections);
  EXPECT_EQ(written({}), "[]\n");
  EXPECT_TRUE(parse_results("[]", "results.json").empty());
}

TEST(Results, RejectNonFiniteNumbers) {
  std::string text;
  ResultWriter writer([&](std::string_view piece) { text += piece; });
  expect_error([&] { writer.add({1, 1, std::nan(""), BoundingBox{}, {}}); }, Fault::numeric, "has the number nan");
  expect_error(
      [&] {
        writer.add({1, 1, .5, BoundingBox{0, 0, std::numeric_limits<double>::infinity(), 0}, {}});
      },
      Fault::numeric, "has the number inf");
  EXPECT_EQ(text, "");
  writer.finish();
  expect_error([&] { writer.finish(); }, Fault::config, "called twice");
  expect_error([&] { writer.add({1, 1, .5, BoundingBox{}, {}}); }, Fault::config, "after finish()");
}

TEST(Results, RejectInvalidText) {
  const auto refused = [](const std::string& text, const std::string& part) {
    expect_error([&] { parse_results(text, "results.json"); }, Fault::data, "results.json: " + part);
  };
  refused("", "invalid JSON");
  refused("{\"annotations\": []}", "an object, expected a list");
  refused("[5]", "detection at index 0 is not an object");
  refused("[{}]", "detection at index 0: image_id is missing, expected a whole number or a string");
  const std::string begin = R"([{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5}, {"image_id": )";
  refused(begin + R"(null}])", "detection at index 1: image_id is null, expected a whole number or a string");
  refused(begin + R"(1, "category_id": 2, "score": 0.5}])", "detection at index 1: neither bbox nor segmentation");
  refused(begin + R"(1, "category_id": 2, "score": 0.5, "bbox": []}])", "detection at index 1: neither bbox");
  refused(begin + R"(1, "category_id": 2, "score": null, "bbox": [1, 2, 3, 4]}])",
          "detection at index 1: score is null");
  refused(begin + R"(1, "category_id": 2, "score": 1, "segmentation": {"size": [5, 5], "counts": "x"}}])",
          "detection at index 1: segmentation: RLE text");
}

TEST(Results, MatchPycocotools) {
  Findings findings;
  const std::vector<Detection> found = parse_results(
      R"([{"image_id": "7", "category_id": 2, "score": 1, "bbox": [NaN, 2, -3, 4], "segmentation": "unused"},
          {"image_id": "a/b", "category_id": "2", "score": 1, "segmentation": [[1, 2, 3, 4, 5, 6]]}])",
      "results.json", {.masks = false, .findings = &findings});
  EXPECT_EQ(found[0].image_id, 7);
  EXPECT_TRUE(std::isnan(found[0].box->x));
  EXPECT_EQ(found[0].box->width, -3);
  EXPECT_EQ(found[1].polygons, (Polygons{{1, 2, 3, 4, 5, 6}}));
  EXPECT_GE(found[1].image_id, int64_t{1} << 61);
  EXPECT_EQ(found[1].category_id, 2);
  EXPECT_EQ(findings.summary(), "numbers NaN or Infinity, which are invalid JSON: 1 read as NaN (first: byte 58)");
}

TEST(Results, RoundTripOfSamples) {
  for (const char* name :
       {"instances_val2014_fakebbox100_results.json", "instances_val2014_fakesegm100_results.json"}) {
    const std::filesystem::path path = test_data("coco_eval") / name;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "SKIPPED: " << path;
    const std::vector<Detection> detections = read_results(path);
    const std::string text = written(detections);
    EXPECT_EQ(nlohmann::json::parse(text), nlohmann::json::parse(read_file(path)));
    expect_same(parse_results(text, "results.json"), detections);
  }
}

}  // namespace
}  // namespace dtrain::data::coco
