// Real-world data sets in dtrain-mask-rcnn and dtrain-data coco: faulty objects, splits in other folders, and
// categories with conflicting ids and names.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/detection/detections.h"
#include "apps/detection/recorded_categories.h"
#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class MaskRcnnData : public MaskRcnn {
 protected:
  std::string annotations(const std::string& split) const {
    return path("data/annotations/instances_" + split + ".json");
  }
  Json read(const std::string& split) const { return Json::parse(read_file(annotations(split))); }
  void write(const std::string& split, const Json& truth) const { write_file(annotations(split), truth.dump()); }
  ProgramResult train(const Words& more = {}) const {
    return run_program("dtrain-mask-rcnn", joined_words(train_words("run", 1), more));
  }
  // Whether a training finds training and validation data.
  bool trains() const {
    const ProgramResult result = train();
    return result.code == 0 && !contains(result.err, "no validation data");
  }
  static void expect(const ProgramResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.code, code) << result.out << result.err;
    EXPECT_TRUE(contains(result.err, part)) << part << " is missing in\n" << result.err;
  }
};

TEST_F(MaskRcnnData, FaultyObjectsAreLeftOutAndCounted) {
  Json truth = read("train");
  truth["annotations"][0]["bbox"] = {40, 40, -20, -20};
  truth["annotations"][1]["segmentation"] = {{1, 1, 20, 20}};
  truth["annotations"][2]["segmentation"].push_back({30, 30, 31, 31});
  truth["annotations"][3]["image_id"] = 99;
  truth["annotations"][4]["segmentation"] = Json::array();
  write("train", truth);
  const std::string found =
      annotations("train") +
      ": boxes of negative width or height: 1 left out (first: annotation 10); polygons of fewer "
      "than 3 corners or an odd count of numbers: 2 left out (first: annotation 11); objects of which no polygon "
      "remains: "
      "1 left out (first: annotation 11); annotations of images that are not listed: 1 left out (first: annotation 13: "
      "image 99)\n";
  const ProgramResult trained = train();
  expect(trained, 0, found);
  EXPECT_TRUE(contains(trained.err, "objects without a mask, from which no mask is learnt: 1 (first: " +
                                        annotations("train") + ": image 4)"))
      << trained.err;
  const Words convert = {"coco", "--input=" + path("data"), "--output=" + path("out"), "--shards=1"};
  expect(run_program("dtrain-data", convert), 0, found);
  const std::string refused = "error: " + annotations("train") + ": boxes of negative width or height: 1 (first: ";
  expect(run_program("dtrain-data", joined_words(convert, {"--strict"})), 2, refused);
  expect(train({"--strict"}), 2, refused);
}

TEST_F(MaskRcnnData, LayoutsOfRoboflowAndCvatAreRead) {
  fs::rename(annotations("train"), path("data/train/_annotations.coco.json"));
  fs::rename(path("data/val"), path("data/valid"));
  fs::rename(annotations("val"), path("data/valid/_annotations.coco.json"));
  EXPECT_TRUE(trains()) << "Roboflow";
  fs::create_directories(path("data/images"));
  for (const auto& [from, to] : {std::pair("train", "Train"), {"valid", "Validation"}}) {
    fs::rename(path(std::string("data/") + from + "/_annotations.coco.json"), annotations(to));
    fs::rename(path(std::string("data/") + from), path(std::string("data/images/") + to));
  }
  fs::remove_all(path("run"));
  EXPECT_TRUE(trains()) << "CVAT";
}

TEST_F(MaskRcnnData, ImagesAreFoundAndMeasured) {
  Json truth = read("train");
  for (Json& image : truth["images"]) {
    const std::string name = image["file_name"];
    const int64_t id = image["id"];
    if (id == 0) image["file_name"] = "/elsewhere/train/" + name;
    if (id == 1) image["file_name"] = "images\\" + name;
    if (id == 2) {
      image.erase("file_name");
      image["coco_url"] = "http://images.cocodataset.org/val/" + name;
    }
    if (id == 3) image["width"] = 0;
    if (id == 4) {
      image.erase("width");
      image.erase("height");
    }
    image["id"] = std::to_string(id);
  }
  for (Json& object : truth["annotations"]) object["image_id"] = std::to_string(object["image_id"].get<int64_t>());
  fs::remove(path("data/train/2.png"));  // found in val/, as its address says
  write("train", truth);
  const ProgramResult trained = train();
  expect(trained, 0, "file names that are absolute: 1 looked for in the folder of images (first: image '0')");
  for (const char* part : {"file names with backslashes: 1 looked for", "images named by coco_url alone: 1 looked for",
                           "images without width and height: 2 measured (first: image '3')"})
    EXPECT_TRUE(contains(trained.err, part)) << part << " is missing in\n" << trained.err;
  EXPECT_FALSE(contains(trained.err, "left out")) << trained.err;
}

// A numeric id that stands for a string exceeds double precision.
TEST(DetectionsOfStringIds, HaveThemAsTheAnnotationsStateThem) {
  const std::vector<data::coco::Category> categories = {{data::coco::kFirstTextId + 5, "a cat", "cat-1"}, {7, "a dog"}};
  data::coco::Detection found{.category_id = categories[0].id, .score = 0.5};
  EXPECT_EQ(detection::json_of(found, categories)["category_id"], "cat-1");
  found.category_id = 7;
  EXPECT_EQ(detection::json_of(found, categories)["category_id"], 7);
  EXPECT_EQ(detection::categories_text(categories),
            concat(R"([{"id":)", categories[0].id, R"(,"name":"a cat","id_text":"cat-1"},{"id":7,"name":"a dog"}])"));
}

// Ground truth contains the evaluated images with their sizes, like the detections.
TEST_F(MaskRcnnData, ImagesToEvaluateAreFoundAndMeasured) {
  Json truth = read("val");
  for (Json& image : truth["images"]) {
    if (image["id"] == 0) image["file_name"] = "/elsewhere/gone.png";
    image.erase("width");
    image.erase("height");
  }
  write("val", truth);
  const ProgramResult trained = train();
  expect(trained, 0, "images without a size or a file: 1 left out (first: image 0: no file elsewhere/gone.png");
  EXPECT_TRUE(contains(trained.err, concat("images without width and height: ", kImages - 1, " measured")))
      << trained.err;
}

TEST_F(MaskRcnnData, SplitsOfCoco2014LieInTwoFolders) {
  Json truth = read("train");
  truth["annotations"][0]["ignore"] = 1;
  truth["annotations"][1]["id"] = truth["annotations"][2]["id"];  // as in the published file
  for (const char* split : {"train2014", "valminusminival2014", "minival2014"}) write(split, truth);
  fs::rename(path("data/train"), path("data/train2014"));
  fs::rename(path("data/val"), path("data/val2014"));
  write_file(path("bom.cfg"), "\xef\xbb\xbfMODE_MASK=True\n");
  Words words = train_words("run", 1);
  words.insert(words.begin() + 1, {"--preset=tensorpack2019", "--config_file=" + path("bom.cfg")});
  const ProgramResult trained = run_program("dtrain-mask-rcnn", words);
  expect(trained, 0, "instances_valminusminival2014.json: objects with ignore: 1: 1 left out (first: annotation 10)");
  EXPECT_TRUE(contains(trained.out, "minival2014-mAP(bbox)/IoU=0.5:0.95")) << trained.out;

  for (Json& object : truth["annotations"]) object["ignore"] = 1;
  for (const char* split : {"train2014", "valminusminival2014"}) write(split, truth);
  words[0] = "train";
  words.insert(words.begin() + 1, "--train_dir=" + path("other"));
  expect(run_program("dtrain-mask-rcnn", words), 2, "objects with ignore: 1: 6 left out");
}

TEST_F(MaskRcnnData, NamedSplitsMustExist) {
  Words words = joined_words(train_words("run", 1), {"DATA.TRAIN=train", "DATA.VAL=val2017"});
  words.insert(words.begin() + 1, "--preset=tensorpack");  // the default is the same
  expect(run_program("dtrain-mask-rcnn", words), 2, "instances_val2017.json");
}

// Version 0.2 had no prefix in names of metrics: a run that follows such a name keeps them.
TEST_F(MaskRcnnData, FollowedMetricsKeepTheirFormerNames) {
  const auto train_by = [&](const std::string& run, const std::string& metric) {
    Words words = joined_words(train_words(run, 1), {"DATA.TRAIN=coco_train", "DATA.VAL=coco_val"});
    words.insert(words.begin() + 1, "--keep_best=" + metric);
    return run_program("dtrain-mask-rcnn", words);
  };
  const std::string metric = "val-mAP(bbox)/IoU=0.5";
  const ProgramResult former = train_by("former", metric), current = train_by("current", "coco_" + metric);
  expect(former, 0,
         "note: " + metric + ": a name of version 0.2, which the metrics of this run keep; for new runs use ");
  EXPECT_TRUE(contains(former.out, " " + metric + ": ")) << former.out;
  EXPECT_FALSE(contains(former.out, "coco_val")) << former.out;
  EXPECT_EQ(current.code, 0) << current.err;
  EXPECT_TRUE(contains(current.out, " coco_" + metric + ": ")) << current.out;
  EXPECT_FALSE(contains(current.err, "version 0.2")) << current.err;
}

TEST_F(MaskRcnnData, SplitsThatThePresetDoesNotNameAreFound) {
  Words words = train_words("run", 1);
  words.insert(words.begin() + 1, "--preset=tensorpack");
  const ProgramResult result = run_program("dtrain-mask-rcnn", words);
  for (const char* const notice : {"has no coco_train2017, the split of --preset=tensorpack; using train",
                                   "has no coco_val2017, the split of --preset=tensorpack; using val"})
    EXPECT_NE(result.err.find(notice), std::string::npos) << result.err;
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(MaskRcnnData, CategoriesAreMatchedByName) {
  Json truth = read("val");
  truth["categories"] = {{{"id", 2}, {"name", "blue"}}, {{"id", 9}, {"name", "red"}}};
  for (Json& object : truth["annotations"]) object["category_id"] = object["category_id"] == 2 ? 9 : 2;
  write("val", truth);
  expect(train(), 0, annotations("val") + ": category red has the id 9, and 2 in the training data: matched by name");

  truth["categories"][0]["name"] = "azure";
  write("val", truth);
  expect(train(), 2, "instances_val.json: category 1 of the detector is 2 (azure), expected 2 (red)");
}

}  // namespace
}  // namespace dtrain
