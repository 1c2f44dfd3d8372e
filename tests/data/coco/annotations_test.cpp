// What is read of an "instances" file, and by which names everything else is refused.
#include "data/coco/annotations.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

using Json = nlohmann::json;

// Two images, of which the second has the smaller id, three categories with gaps, and an annotation of every kind.
const Json kSmallSet = Json::parse(R"({
  "info": {"year": 2014, "nested": [[{"id": 1}], {"annotations": [1, null]}]},
  "images": [{"id": 9, "file_name": "b/two.jpg", "width": 10, "height": 8, "license": 3, "flickr": ["x"]},
             {"id": 0, "file_name": "one.jpg", "width": 20, "height": 30}],
  "annotations": [
    {"segmentation": [[1, 1, 5, 1, 5, 5, 1, 5], [6, 6, 8, 6, 8.5, 8]], "area": 16.5, "iscrowd": 0, "image_id": 9,
     "bbox": [1, 1, 7.5, 7], "category_id": 7, "id": 100},
    {"id": 3, "image_id": 0, "category_id": 90, "bbox": [-5, 2, 100, 3]},
    {"id": 0, "image_id": 9, "category_id": 1, "bbox": [0, 0, 2, 2], "is_crowd": 1, "area": 4,
     "segmentation": {"size": [8, 10], "counts": [0, 2, 78]}},
    {"id": 5, "image_id": 9, "category_id": 7, "segmentation": {"counts": "05[2", "size": [8.0, 10]}, "iscrowd": true}
  ],
  "categories": [{"id": 90, "name": "kite", "supercategory": "sports"}, {"id": 7, "name": "cat"}, {"id": 1, "name": "dog"}]
})");

Annotations parse_json(const Json& json, const AnnotationOptions& options = {}) {
  return parse_annotations(json.dump(), "set.json", options);
}

void expect_refused(const Json& json, const std::string& part) {
  expect_error([&] { parse_json(json); }, Fault::data, part);
}

// The small set with one change.
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
  EXPECT_EQ(box.box, (Box{-5, 2, 100, 3}));
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

  const Annotation& bare = all.of(1)[2];  // its area and box are those of its mask
  EXPECT_TRUE(bare.is_crowd);
  EXPECT_EQ(bare.area, 5);
  EXPECT_EQ(bare.box, (Box{0, 0, 1, 5}));
}

TEST(Annotations, OfSomeClassesComeInTheirOrder) {
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

TEST(Annotations, ThatContradictThemselvesAreRefused) {
  const auto refused = [](const std::string& pointer, const Json& value, const std::string& part) {
    expect_refused(changed(pointer, value), "set.json: " + part);
  };
  refused("/images/1/id", 9, "image 9 is there twice");
  refused("/categories/1/id", 90, "category 90 is there twice");
  refused("/annotations/1/id", 100, "annotation 100 is there twice");
  refused("/annotations/1/image_id", 8, "annotation 3: no image has the id 8");
  refused("/annotations/1/category_id", 8, "annotation 3: no category has the id 8");
  refused("/annotations/1/category_id", nullptr, "annotation 3: category_id is null, expected a whole number");
  refused("/annotations/1/image_id", "9", "annotation 3: image_id is the string '9', expected a whole number");
  refused("/annotations/1/id", "abc\n", "annotation at index 1: id is the string 'abc?', expected a whole number");
  refused("/annotations/1/id", 1.5, "annotation at index 1: id is 1.5, expected a whole number");
  refused("/annotations/1/id", UINT64_MAX, "annotation at index 1: id is 1.84467e+19");
  refused("/annotations/0/iscrowd", 2, "annotation 100: iscrowd is 2, expected 0 or 1");
  refused("/annotations/0/area", "big", "annotation 100: area is the string 'big', expected a number");
  refused("/annotations/0/area", -1, "annotation 100: area is -1");
  refused("/annotations/0/bbox", {1, 2, 3}, "annotation 100: bbox has 3 numbers");
  refused("/annotations/0/bbox", {1, 2, 3, "4"}, "annotation 100: bbox holds something that is no number");
  refused("/annotations/0/bbox", {1, 2, 3, {4}}, "annotation 100: bbox holds something that is no number");
  refused("/annotations/0/bbox", {1, 2, 1e300, 4}, "annotation 100: bbox has the number 1e+300");
  refused("/annotations/0/bbox", {1, 2, -3, 4}, "annotation 100: bbox has the size -3 x 4");
  refused("/annotations/0/bbox", 5, "annotation 100: bbox is 5, expected a list");
  refused("/annotations/0/bbox", Json::object(), "annotation 100: bbox is an object, expected a list");
  refused("/annotations/3/segmentation", nullptr, "annotation 5: neither bbox nor segmentation");
  refused("/images/0/width", 0, "image 9: a size of 8 x 0 pixels");
  refused("/images/0/width", "10", "image 9: width is the string '10'");
  refused("/images/0/file_name", nullptr, "image 9: file_name is null, expected a string");
  refused("/categories/2", 7, "category at index 2 is no object");
  refused("/categories/2", {7}, "category at index 2 is no object");
  refused("/categories/2", {{"id", 5}}, "category 5: name is missing, expected a string");
  refused("/images", 5, "images is no list");
  refused("/images", Json::object(), "images is no list");
}

TEST(Annotations, WithSegmentationsThatAreNoneAreRefused) {
  const auto refused = [](const Json& value, const std::string& part) {
    expect_refused(changed("/annotations/0/segmentation", value), "set.json: annotation 100: segmentation" + part);
  };
  refused("05[2", " is the string '05[2', expected a list of polygons");
  refused({1, 2, 3, 4, 5, 6}, " is a list that holds something other than lists");
  refused({{{"x", 1}}}, " is a list that holds something other than lists");
  refused({{1, 2, 3, 4}}, " has a polygon of 4 numbers");
  refused({{1, 2, 3, 4, 5, 6, 7}}, " has a polygon of 7 numbers");
  refused(Json::parse("[[]]"), " has a polygon of 0 numbers");
  refused({{1, 2, 3, 4, 5, nullptr}}, " holds a polygon with something that is no number");
  refused({{1, 2, 3, 4, 5, 1e7}}, " has the coordinate 1e+07");
  refused(Json::object(), " has no size of two whole numbers");
  refused({{"size", {8, 10}}}, " has no counts");
  refused({{"size", {8, 10}}, {"counts", 5}}, " has no counts");
  refused({{"size", 8}, {"counts", "05[2"}}, " has no size of two");
  refused({{"size", {8, "10"}}, {"counts", "05[2"}}, " has a size with something that is no number");
  refused({{"size", {8, -10}}, {"counts", "05[2"}}, " has no size of two");
  refused({{"size", {10, 8}}, {"counts", "05[2"}}, " of 10 x 8 pixels for image 9 of 8 x 10");
  refused({{"size", {8, 10}}, {"counts", "05[1"}}, ": RLE of 48 pixels for a mask of 8 x 10");
  refused({{"size", {8, 10}}, {"counts", "05 2"}}, ": RLE text has a character of code 32");
  refused({{"size", {8, 10}}, {"counts", {0, 5}}}, ": RLE of 5 pixels");
  refused({{"size", {8, 10}}, {"counts", {0, 5.5, 74.5}}}, ": a run of 5.5 pixels");
  refused({{"size", {8, 10}}, {"counts", {-1, 81}}}, ": a run of -1 pixels");
  refused({{"size", {8, 10}}, {"counts", {0, "80"}}}, " has counts with something that is no number");
  refused({{"size", {65500, 65500}}, {"counts", {0, 80}}}, ": a size of 65500 x 65500");
}

TEST(Annotations, OfFilesOutsideTheirFolderAreRefused) {
  for (const char* name : {"/etc/passwd", "../a.jpg", "a/../../b.jpg", "a/..", "..", "", "a/"})
    expect_refused(changed("/images/0/file_name", name), "set.json: image 9: file_name leads out of the folder");
  expect_refused(changed("/images/0/file_name", std::string("a\0b", 3)), "image 9: file_name leads out");
  for (const char* name : {"a..b.jpg", "...", "a/b/c.png", "ä.jpg"})
    EXPECT_EQ(parse_json(changed("/images/0/file_name", name)).images[1].file_name, name);
}

TEST(Annotations, OfTextThatIsNoJsonAreRefused) {
  const auto refused = [](const std::string& text, const std::string& part) {
    expect_error([&] { parse_annotations(text, "set.json"); }, Fault::data, "set.json: " + part);
  };
  refused("", "invalid JSON or UTF-8 at byte");
  refused("{\"images\": [", "invalid JSON or UTF-8 at byte");
  refused("{} {}", "invalid JSON or UTF-8 at byte");
  refused("{\"images\": [{\"id\": NaN}]}", "invalid JSON or UTF-8 at byte 20");
  refused("{\"images\": [{\"id\": 1e999}]}", "a number that is too large at byte");
  refused("{\"images\": [], \"images\": []}", "images is there twice");
  refused("{\"images\": [], \"annotations\": []}", "no list 'categories'");
  refused("[]", "a list, expected an object that holds lists");
  refused("5", "a single value, expected");
  refused(std::string(100000, '['), "a list, expected an object");
  refused("{\"info\": " + std::string(100000, '['), "JSON nested more than 64 deep");
  const std::string whole = kSmallSet.dump();
  for (size_t size = 0; size < whole.size(); size += 7)
    expect_error([&] { parse_annotations(whole.substr(0, size), "set.json"); }, Fault::data, "set.json: ");
}

TEST(Annotations, OfDamagedTextAreReadOrRefused) {
  const std::string whole = kSmallSet.dump();
  int read = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      try {
        parse_annotations(damaged, "set.json");
        ++read;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::data) << error.what();
        EXPECT_TRUE(std::string(error.what()).starts_with("set.json: ")) << error.what();
        ++refused;
      }
    }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Annotations, TakeTheLastOfSeveralEqualKeys) {
  const Annotations all = parse_annotations(
      R"({"images": [{"id": 1, "file_name": "a", "width": 9, "height": 9, "id": 2}],
          "categories": [{"id": 1, "name": "a"}],
          "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [1, 2, 3, 4], "bbox": [5, 6, 7, 8],
                           "segmentation": [[1, 2, 3, 4, 5, 6]], "segmentation": [[6, 5, 4, 3, 2, 1]]}]})",
      "set.json");
  EXPECT_EQ(all.images[0].id, 2);
  EXPECT_EQ(all.annotations[0].box, (Box{5, 6, 7, 8}));
  EXPECT_EQ(std::get<Polygons>(all.annotations[0].segmentation), (Polygons{{6, 5, 4, 3, 2, 1}}));
}

TEST(Annotations, AreReadFromFilesInPieces) {
  const TempDirectory directory;
  Json json = kSmallSet;
  const std::string padding(3'000'000, 'x');  // several pieces
  json["info"]["description"] = padding;
  json["zz"] = padding;
  write_file(directory / "set.json", json.dump());
  const Annotations all = read_annotations(directory / "set.json");
  EXPECT_EQ(all.annotations.size(), 4u);
  expect_error([&] { read_annotations(directory / "none.json"); }, Fault::data, "none.json");
}

TEST(Annotations, OfTheSampleAreThoseOfItsText) {
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
