// Parsing of "instances" files, and errors for invalid ones.
#include "dtrain/data/coco/annotations.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tests/data/coco/small_set.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

Annotations parse_json(const Json& json, const AnnotationOptions& options = {}) {
  return parse_annotations(json.dump(), "set.json", options);
}

void expect_refused(const Json& json, const std::string& part) {
  expect_error([&] { parse_json(json); }, Fault::data, part);
}

// kSmallSet with one change.
Json changed(const std::string& pointer, const Json& value) {
  Json json = kSmallSet;
  json[Json::json_pointer(pointer)] = value;
  return json;
}

TEST(Annotations, KeepWhatTrainingNeeds) {
  const Annotations all = parse_json(kSmallSet);
  ASSERT_EQ(all.images.size(), 2u);
  EXPECT_EQ(all.images[0].id, 0);
  EXPECT_EQ(all.images[0].file_name, "one.jpg");
  EXPECT_EQ(all.images[1].file_name, "b/two.jpg");
  EXPECT_EQ(all.images[1].width, 10);
  EXPECT_EQ(all.images[1].height, 8);
  ASSERT_EQ(all.categories.size(), 3u);
  EXPECT_EQ(all.categories[0].name, "dog");
  EXPECT_EQ(all.categories[1].name, "cat");
  EXPECT_EQ(all.categories[2].id, 90);
  ASSERT_EQ(all.begins, (std::vector<uint64_t>{0, 1, 4}));

  const Annotation& box = all.of(0)[0];
  EXPECT_EQ(box.id, 3);
  EXPECT_EQ(box.category, 2u);
  EXPECT_EQ(box.box, (BoundingBox{-5, 2, 100, 3}));
  EXPECT_EQ(box.area, 300);
  EXPECT_FALSE(box.is_crowd);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(box.segmentation));
  expect_error([&] { mask_of(box, 30, 20); }, Fault::data, "annotation 3 has no segmentation");

  const Annotation& polygons = all.of(1)[0];
  EXPECT_EQ(polygons.id, 100);
  EXPECT_EQ(polygons.area, 16.5);
  EXPECT_EQ(polygons.image, 1u);
  EXPECT_EQ(std::get<Polygons>(polygons.segmentation), (Polygons{{1, 1, 5, 1, 5, 5, 1, 5}, {6, 6, 8, 6, 8.5, 8}}));
  EXPECT_EQ(area(mask_of(polygons, 8, 10)), 17u);

  const Annotation& crowd = all.of(1)[1];
  EXPECT_TRUE(crowd.is_crowd);
  EXPECT_EQ(crowd.id, 0);
  EXPECT_EQ(std::get<Rle>(crowd.segmentation).counts, (std::vector<uint32_t>{0, 2, 78}));
  EXPECT_EQ(mask_of(crowd, 8, 10), std::get<Rle>(crowd.segmentation));
  expect_error([&] { mask_of(crowd, 10, 8); }, Fault::data, "a mask of 8 x 10 pixels, expected 10 x 8");

  const Annotation& bare = all.of(1)[2];  // area and box are computed from its mask
  EXPECT_TRUE(bare.is_crowd);
  EXPECT_EQ(bare.area, 5);
  EXPECT_EQ(bare.box, (BoundingBox{0, 0, 1, 5}));
}

TEST(Annotations, SelectedClassesKeepTheirOrder) {
  const Json& json = kSmallSet;
  const Annotations some = parse_json(json, {{"kite", "dog"}});
  ASSERT_EQ(some.categories.size(), 2u);
  EXPECT_EQ(some.categories[0].name, "kite");
  EXPECT_EQ(some.begins, (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(some.of(0)[0].category, 0u);
  EXPECT_EQ(some.of(1)[0].category, 1u);
  EXPECT_EQ(some.images.size(), 2u);
  const Annotations one = parse_json(json, {{"cat"}});
  EXPECT_EQ(one.begins, (std::vector<uint64_t>{0, 0, 2}));
  expect_error([&] { parse_json(json, {{"kyte"}}); }, Fault::data,
               "set.json: no category has the name 'kyte'; did you mean 'kite'?");
  expect_error([&] { parse_json(json, {{"dog", "dog"}}); }, Fault::config, "the class 'dog' is listed twice");
  expect_error([&] { parse_json(changed("/categories/0/name", "dog"), {{"dog"}}); }, Fault::data,
               "several categories have the name 'dog'");
}

TEST(Annotations, MayBeNone) {
  const Annotations none =
      parse_json({{"images", Json::array()}, {"categories", Json::array()}, {"annotations", Json::array()}});
  EXPECT_EQ(none.begins, std::vector<uint64_t>{0});
  const Annotations image =
      parse_json({{"images", {kSmallSet["images"][0]}}, {"categories", Json::array()}, {"annotations", Json::array()}});
  EXPECT_TRUE(image.of(0).empty());
}

TEST(Annotations, RejectContradictions) {
  const auto refused = [](const std::string& pointer, const Json& value, const std::string& part) {
    expect_refused(changed(pointer, value), "set.json: " + part);
  };
  refused("/images/1/id", 9, "duplicate image 9");
  refused("/images/1/id", nullptr, "image at index 1: id is null, expected a whole number or a string");
  refused("/categories/1/id", 90, "duplicate category 90");
  refused("/categories/2", 7, "category at index 2 is not an object");
  refused("/categories/2", {7}, "category at index 2 is not an object");
  refused("/categories/2", {{"id", 5}}, "category 5: name is missing, expected a string");
  refused("/images", 5, "images is not a list");
  refused("/images", Json::object(), "images is not a list");
}

// Expects this number of annotations, and this finding.
void expect_found(const Json& json, size_t annotations, const std::string& finding) {
  const Annotations all = parse_json(json);
  EXPECT_EQ(all.annotations.size(), annotations) << finding;
  EXPECT_TRUE(contains(all.findings.summary(), finding)) << all.findings.summary() << "\nlacks " << finding;
  const std::string kind = finding.substr(0, finding.find(": "));
  expect_error([&] { parse_json(json, {.strict = true}); }, Fault::data, "set.json: ");
  expect_error([&] { parse_json(json, {.strict = true}); }, Fault::data, kind);
}

TEST(Annotations, SkipUnusableObjects) {
  const auto found = [](const std::string& pointer, const Json& value, size_t annotations, const std::string& finding) {
    expect_found(changed("/annotations/" + pointer, value), annotations, finding);
  };
  const std::string form = "objects that are not in COCO's form: 1 left out (first: annotation 100: ";
  found("1/id", 100, 4, "annotations with the id of another one: 1 used all the same (first: annotation 100)");
  found("1/id", 1.5, 4, "annotations without an id: 1 used all the same (first: annotation at index 1)");
  found("1/id", UINT64_MAX, 4, "annotations without an id: 1 used");
  found("1/image_id", 8, 3, "annotations of images that are not listed: 1 left out (first: annotation 3: image 8)");
  found("1/category_id", 8, 3, "annotations of categories that are not listed: 1 left out (first: annotation 3: ");
  found("0/category_id", nullptr, 3, form + "category_id is null, expected a whole number or a string)");
  found("0/iscrowd", 2, 3, form + "iscrowd is 2, expected 0 or 1)");
  found("0/area", "big", 3, form + "area is the string 'big', expected a number)");
  found("0/area", -1, 3, form + "area is -1)");
  found("0/bbox", {1, 2, 3}, 3, form + "bbox has 3 numbers");
  found("0/bbox", {1, 2, 3, "4"}, 3, form + "bbox contains a non-number");
  found("0/bbox", {1, 2, 3, {4}}, 3, form + "bbox contains a non-number");
  found("0/bbox", 5, 3, form + "bbox is 5, expected a list");
  found("0/bbox", Json::object(), 3, form + "bbox is an object, expected a list");
  found("0/bbox", {1, 2, 1e300, 4}, 3, "boxes with numbers that are not finite or beyond 1e9: 1 left out");
  found("0/bbox", {1, 2, nullptr, 4}, 3, "boxes with numbers that are not finite");
  found("0/bbox", {1, 2, -3, 4}, 3, "boxes of negative width or height: 1 left out (first: annotation 100)");
  found("3/segmentation", nullptr, 3, "objects without box and mask: 1 left out (first: annotation 5)");
}

TEST(Annotations, CountFindingsByKind) {
  Json json = kSmallSet;
  json["annotations"][0]["bbox"] = {5, 5, -4, -4};
  json["annotations"][1]["bbox"] = {5, 5, 4, -4};
  json["annotations"][2]["image_id"] = 77;
  const Annotations all = parse_json(json);
  EXPECT_EQ(all.findings.summary(),
            "boxes of negative width or height: 2 left out (first: annotation 100); annotations of images that are not "
            "listed: 1 left out (first: annotation 0: image 77)");
  expect_error([&] { parse_json(json, {.strict = true}); }, Fault::data,
               "set.json: boxes of negative width or height: 2 (first: annotation 100); annotations of images that are "
               "not listed: 1 (first: annotation 0: image 77)");
  EXPECT_TRUE(parse_json(kSmallSet, {.strict = true}).findings.all().empty());
}

TEST(Annotations, DropInvalidPolygons) {
  const Json good = {1, 1, 5, 1, 5, 5, 1, 5};
  for (const Json& bad : {Json{1, 2, 3, 4}, Json{1, 2, 3, 4, 5, 6, 7}, Json::array(), Json{1, 2, 3, 4, 5, nullptr},
                          Json{1, 2, 3, 4, 5, 1e7}}) {
    const Annotations all = parse_json(changed("/annotations/0/segmentation", Json::array({bad, good})));
    EXPECT_EQ(std::get<Polygons>(all.of(1)[0].segmentation), (Polygons{{1, 1, 5, 1, 5, 5, 1, 5}})) << bad;
    EXPECT_TRUE(contains(all.findings.summary(), ": 1 left out (first: annotation 100)")) << all.findings.summary();
    expect_found(changed("/annotations/0/segmentation", Json::array({bad})), 3,
                 "objects of which no polygon remains: 1 left out (first: annotation 100)");
  }
  const Annotations empty = parse_json(changed("/annotations/0/segmentation", Json::array()));
  EXPECT_EQ(empty.of(1)[0].segmentation.index(), 0u) << "an object without a mask";
}

TEST(Annotations, SkipInvalidSegmentations) {
  const auto found = [](const Json& value, const std::string& part) {
    expect_found(changed("/annotations/0/segmentation", value), 3,
                 "objects that are not in COCO's form: 1 left out (first: annotation 100: segmentation" + part);
  };
  found("05[2", " is the string '05[2', expected a list of polygons");
  found({1, 2, 3, 4, 5, 6}, " is a list that holds something other than lists");
  found({{{"x", 1}}}, " is a list that holds something other than lists");
  found(Json::object(), " has no size of two whole numbers");
  found({{"size", {8, 10}}}, " has no counts");
  found({{"size", {8, 10}}, {"counts", 5}}, " has no counts");
  found({{"size", 8}, {"counts", "05[2"}}, " has no size of two");
  found({{"size", {8, "10"}}, {"counts", "05[2"}}, " has a size with a non-number");
  found({{"size", {8, -10}}, {"counts", "05[2"}}, " has no size of two");
  found({{"size", {8, 10}}, {"counts", "05[1"}}, ": RLE of 48 pixels for a mask of 8 x 10");
  found({{"size", {8, 10}}, {"counts", "05 2"}}, ": RLE text has a character of code 32");
  found({{"size", {8, 10}}, {"counts", {0, 5}}}, ": RLE of 5 pixels");
  found({{"size", {8, 10}}, {"counts", {0, 5.5, 74.5}}}, ": a run of 5.5 pixels");
  found({{"size", {8, 10}}, {"counts", {-1, 81}}}, ": a run of -1 pixels");
  found({{"size", {8, 10}}, {"counts", {0, "80"}}}, " has counts with a non-number");
  found({{"size", {65500, 65500}}, {"counts", {0, 80}}}, ": a size of 65500 x 65500");
  expect_found(
      changed("/annotations/0/segmentation", {{"size", {10, 8}}, {"counts", "05[2"}}), 3,
      "objects with a mask of another size than their image: 1 left out (first: annotation 100: 10 x 8 pixels, "
      "image 9 has 8 x 10)");
}

TEST(Annotations, AcceptStringIds) {
  Json json = kSmallSet;
  json["images"][0]["id"] = "9";
  json["annotations"][0]["image_id"] = "9";  // the others have the number
  json["images"][1]["id"] = "img/0";
  json["annotations"][1]["image_id"] = "img/0";
  json["annotations"][1]["id"] = "x";
  const Annotations all = parse_json(json, {.strict = true});
  ASSERT_EQ(all.annotations.size(), 4u);
  EXPECT_EQ(all.images[0].id, 9);
  EXPECT_EQ(all.images[0].id_text, "9");
  EXPECT_EQ(all.images[1].id_text, "img/0");
  EXPECT_GE(all.images[1].id, int64_t{1} << 61);
  EXPECT_EQ(all.begins, (std::vector<uint64_t>{0, 3, 4}));
}

TEST(Annotations, SkipIgnoredObjectsOnRequest) {
  const Json json = changed("/annotations/0/ignore", 1);
  const Annotations kept = parse_json(json, {.strict = true}), left = parse_json(json, {.skip_ignored = true});
  EXPECT_EQ(kept.annotations.size(), 4u);
  EXPECT_EQ(kept.findings.summary(), "objects with ignore: 1: 1 used like all others (first: annotation 100)");
  EXPECT_EQ(left.annotations.size(), 3u);
  EXPECT_EQ(left.findings.summary(), "objects with ignore: 1: 1 left out (first: annotation 100)");
}

TEST(Annotations, MissingSizesComeFromFiles) {
  for (const Json& width : {Json(0), Json(nullptr), Json("10"), Json(-3)}) {
    const Json json = changed("/images/0/width", width);
    expect_found(json, 1, "images without a size or a file: 1 left out (first: image 9: no width and height");
    const AnnotationOptions measured{.complete = [](AnnotatedImage& image, const std::string&) {
      EXPECT_EQ(image.width, 0);
      image.width = 10;
      image.height = 8;
    }};
    const Annotations all = parse_json(json, measured);
    EXPECT_EQ(all.annotations.size(), 4u);
    EXPECT_EQ(all.findings.summary(), "images without width and height: 1 measured (first: image 9)");
  }
}

TEST(Annotations, AcceptAllFormsOfFileNames) {
  const auto name = [](const Json& value, const char* key = "file_name") {
    Json json = changed("/images/0/file_name", nullptr);
    json["images"][0][key] = value;
    std::string seen;
    const AnnotationOptions options{
        .complete = [&](AnnotatedImage& image, const std::string&) { seen = image.file_name; }};
    parse_json(json, options);
    const Annotations all = parse_json(json);
    return seen + " " + (all.images.size() > 1 ? all.images[1].file_name : "");
  };
  EXPECT_EQ(name("/data/images/x.png"), "data/images/x.png x.png");
  EXPECT_EQ(name("images\\x.png"), "images/x.png images/x.png");
  EXPECT_EQ(name("C:\\data\\x.png"), "data/x.png x.png");
  EXPECT_EQ(name("http://images.cocodataset.org/train2017/x.png", "coco_url"), "train2017/x.png x.png");
  EXPECT_EQ(name("x.png", "coco_url"), "x.png x.png");
  EXPECT_EQ(name("http://h//x.png", "coco_url"), "x.png x.png") << "no path from the root";
  EXPECT_EQ(name("C:/data/x.png"), "data/x.png x.png");
  EXPECT_EQ(name("b/x.png"), " b/x.png") << "nothing to look for";
  expect_found(changed("/images/0/file_name", nullptr), 1, "images without file_name: 1 left out (first: image 9)");
}

TEST(Annotations, ScoringMatchesPycocotools) {
  const AnnotationOptions scoring{.use = AnnotationOptions::Use::scoring};
  Json json = Json::parse(R"({
    "images": [{"id": 2}, {"id": 1}], "categories": [{"id": 3}, {"id": 4}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 2, 3, -4], "area": 7, "iscrowd": 0},
                    {"id": 5, "image_id": 99, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 7, "iscrowd": 0},
                    {"id": 0, "image_id": 2, "category_id": 4, "bbox": [1, 2, 3, 4], "area": 7, "iscrowd": 0}]})");
  const Annotations all = parse_json(json, scoring);
  ASSERT_EQ(all.begins, (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(all.of(0)[0].box, (BoundingBox{1, 2, 3, -4}));
  EXPECT_FALSE(all.of(0)[0].never_matches);
  EXPECT_TRUE(all.of(1)[0].never_matches);
  EXPECT_EQ(all.findings.count("annotations of images that are not listed"), 1u);

  json["annotations"][1] = json["annotations"][2];
  json["annotations"][1]["id"] = 1;  // pycocotools takes the first one for it
  const Annotations repeated = parse_json(json, scoring);
  ASSERT_EQ(repeated.begins, (std::vector<uint64_t>{0, 0, 3}));
  for (const size_t i : {0u, 1u, 2u}) EXPECT_EQ(repeated.of(1)[i].category, 1u);
  json["annotations"][1]["image_id"] = 99;
  EXPECT_EQ(parse_json(json, scoring).begins, (std::vector<uint64_t>{0, 0, 1})) << "the last of id 1 is of no image";
}

TEST(Annotations, ScoringKeepsPolygonsOfPycocotools) {
  const auto polygons = [](const Json& value) {
    const Annotations all =
        parse_json(changed("/annotations/0/segmentation", value), {.use = AnnotationOptions::Use::scoring});
    EXPECT_EQ(all.annotations.size(), 4u);
    const auto* found = std::get_if<Polygons>(&all.of(1)[0].segmentation);
    return found ? *found : Polygons{};
  };
  EXPECT_EQ(polygons({{1, 1, 5, 1, 5, 5, 1}}), (Polygons{{1, 1, 5, 1, 5, 5}}));
  EXPECT_EQ(polygons({{1, 1, 5, 1, 5, 5}, {1, 1, 3, 3}}), (Polygons{{1, 1, 5, 1, 5, 5}}));
  EXPECT_EQ(polygons({{1, 1, 5, 1, 5}}), (Polygons{{0, 0, 0, 0, 0, 0}})) << "a mask of no pixel";
  EXPECT_EQ(polygons({{1, 1, 3, 3}, {1, 1, 5, 1, 5, 5}}), Polygons{});
  EXPECT_EQ(polygons("none"), Polygons{});
  const auto unseen = parse_json(changed("/annotations/0/segmentation", "none"),
                                 {.use = AnnotationOptions::Use::scoring, .masks = false});
  EXPECT_EQ(unseen.findings.summary(),
            "annotations of id 0: 1 that no detection matches, as in pycocotools (first: "
            "annotation 0)");
}

TEST(Annotations, RejectFilesOutsideTheFolder) {
  for (const char* name : {"../a.jpg", "..\\a.jpg", "/../a.jpg", "a/../../b.jpg", "a/..", "..", "", "a/"})
    expect_refused(changed("/images/0/file_name", name), "set.json: image 9: file_name leads out of the folder");
  expect_refused(changed("/images/0/file_name", std::string("a\0b", 3)), "image 9: file_name leads out");
  std::string long_name;
  for (int i = 0; i < 5000; ++i) long_name += "\\a";
  expect_refused(changed("/images/0/file_name", long_name),
                 "image 9: a file name of 10000 bytes, expected at most 4096");
  for (const char* name : {"a..b.jpg", "...", "a/b/c.png", "ä.jpg"})
    EXPECT_EQ(parse_json(changed("/images/0/file_name", name)).images[1].file_name, name);
}

TEST(Annotations, ScoringIgnoresFileNames) {
  const AnnotationOptions scoring{.use = AnnotationOptions::Use::scoring};
  for (const char* name : {"../../label-studio/a.jpg", "", "a/"})
    EXPECT_EQ(parse_json(changed("/images/0/file_name", name), scoring).images[1].file_name, "") << name;
  EXPECT_EQ(parse_json(kSmallSet, scoring).images[1].file_name, "b/two.jpg");
}

TEST(Annotations, IgnoreFlagMayBeAnyIntegerForm) {
  for (const Json& mark : {Json(1), Json(1.0), Json(true)}) {
    const Annotations all = parse_json(changed("/annotations/0/ignore", mark), {.skip_ignored = true});
    EXPECT_EQ(all.annotations.size(), 3u) << mark;
    EXPECT_EQ(all.findings.count("objects with ignore: 1"), 1u) << mark;
  }
  EXPECT_EQ(parse_json(changed("/annotations/0/ignore", 0.0), {.skip_ignored = true}).annotations.size(), 4u);
}

// Each annotation of a shared id is scored as the last one, whose mask may be large.
TEST(Annotations, ScoringLimitsCopiesOfMasks) {
  Json json = kSmallSet;
  json["annotations"] = Json::array();
  for (int i = 0; i < 2000; ++i)
    json["annotations"].push_back(
        {{"id", 1}, {"image_id", 9}, {"category_id", 7}, {"bbox", {1, 2, 3, 4}}, {"area", 7}});
  Json corners = Json::array();
  for (int i = 0; i < 10000; ++i) corners.push_back(i % 9);
  json["annotations"].back()["segmentation"] = Json::array({corners});
  const AnnotationOptions scoring{.use = AnnotationOptions::Use::scoring};
  expect_error(
      [&] { parse_json(json, scoring); }, Fault::data,
      "set.json: annotation 1: so many annotations have its id that their masks have more than 16160000 numbers");
  json["annotations"].erase(json["annotations"].begin(), json["annotations"].begin() + 1000);
  EXPECT_EQ(parse_json(json, scoring).annotations.size(), 1000u);
}

TEST(Annotations, ParseTheSample) {
  const std::filesystem::path path = test_data("coco_eval/instances_val2014_100.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "SKIPPED: " << path;
  const Annotations all = read_annotations(path);
  const Json json = Json::parse(read_file(path));
  ASSERT_EQ(all.images.size(), json["images"].size());
  ASSERT_EQ(all.categories.size(), 80u);
  ASSERT_EQ(all.annotations.size(), json["annotations"].size());
  std::map<int64_t, const Annotation*> by_id;
  for (const Annotation& annotation : all.annotations) by_id[annotation.id] = &annotation;
  for (const Json& expected : json["annotations"]) {
    const Annotation& annotation = *by_id.at(expected["id"]);
    EXPECT_EQ(all.images[annotation.image].id, expected["image_id"]);
    EXPECT_EQ(all.categories[annotation.category].id, expected["category_id"]);
    EXPECT_EQ(annotation.area, expected["area"]);
    EXPECT_EQ(Json({annotation.box.x, annotation.box.y, annotation.box.width, annotation.box.height}),
              expected["bbox"]);
    EXPECT_EQ(annotation.is_crowd, expected["iscrowd"] == 1);
    if (annotation.is_crowd)
      EXPECT_EQ(Json(std::get<Rle>(annotation.segmentation).counts), expected["segmentation"]["counts"]);
    else
      EXPECT_EQ(Json(std::get<Polygons>(annotation.segmentation)), expected["segmentation"]);
  }
}

}  // namespace
}  // namespace dtrain::data::coco
