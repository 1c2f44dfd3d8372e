// Valid JSON with wrong, empty or useless annotations and results: a table of changes to a small valid set. Unparsable
// files are in data/coco/annotations_test.cpp.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain {
namespace {

// A change of all splits' annotations, and per program the expected exit code, 0 or 2, and a part of its output (of the
// error after the path of the annotations). An empty part is not checked.
struct AnnotationFault {
  const char* name;
  void (*change)(Json& truth);
  struct Outcome {
    int code;
    const char* part;
  };
  Outcome train, eval, convert;
};

std::ostream& operator<<(std::ostream& out, const AnnotationFault& fault) { return out << fault.name; }

constexpr char kNoTruth[] = "val-mAP(segm)/IoU=0.5: -1 (no ground truth)\n";
constexpr char kNothingToLearn[] = ": none of its 6 images has an object to train on; crowds and objects without area";
constexpr char kTwice[] = ": annotations with the id of another one: 1 used all the same (first: annotation 10)";
constexpr char kUnlisted[] =
    ": annotations of categories that are not listed: 1 left out (first: annotation 10: category 5)";
constexpr char kOtherSize[] =
    ": objects with a mask of another size than their image: 1 left out (first: annotation 10: 8 x 8 pixels, image 0 "
    "has 64 x 64)";
constexpr AnnotationFault::Outcome kSoundEval = {0, "val-mAP(bbox)/large: -1 (no ground truth of area large)\n"};
constexpr AnnotationFault::Outcome kWritten = {0, ""};

void remove_objects(Json& truth) { truth["annotations"] = Json::array(); }

const AnnotationFault kAnnotationFaults[] = {
    {"ObjectsOfSomeImagesOnly",
     [](Json& truth) { truth["annotations"].erase(0); },
     {0, "finished after step 1"},
     kSoundEval,
     kWritten},
    {"NoObjects", remove_objects, {2, kNothingToLearn}, {0, kNoTruth}, kWritten},
    {"AllCrowds",
     [](Json& truth) {
       for (Json& object : truth["annotations"]) object["iscrowd"] = 1;
     },
     {2, kNothingToLearn},
     {0, kNoTruth},
     kWritten},
    {"ObjectsWithoutArea",
     [](Json& truth) {
       for (Json& object : truth["annotations"]) object["bbox"] = {4, 4, 0, 0};
     },
     {2, kNothingToLearn},
     kSoundEval,
     kWritten},
    {"NoImages",
     [](Json& truth) {
       remove_objects(truth);
       truth["images"] = Json::array();
     },
     {2, ": lists no images"},
     {2, ": lists no images"},
     {2, ": lists no images"}},
    {"NoCategories",
     [](Json& truth) {
       remove_objects(truth);
       truth["categories"] = Json::array();
     },
     {2, ": lists no categories"},
     {2, ": lists no categories"},
     kWritten},
    {"TheSameAnnotationTwice",
     [](Json& truth) { truth["annotations"][1]["id"] = 10; },
     {0, kTwice},
     {0, ": annotations with the id of another one: 1 scored as the last one of their id"},
     {0, kTwice}},
    {"TheSameImageTwice",
     [](Json& truth) { truth["images"][1]["id"] = 0; },
     {2, ": duplicate image 0"},
     {0, ": lines with the id of another image: 1 taken for it (first: image 0)"},
     {2, ": duplicate image 0"}},
    {"ACategoryOfTheGap",
     [](Json& truth) { truth["annotations"][0]["category_id"] = 5; },
     {0, kUnlisted},
     {0, kUnlisted},
     {0, kUnlisted}},
    {"AMaskOfAnotherSize",
     [](Json& truth) {
       truth["annotations"][0]["segmentation"] = {{"size", {8, 8}}, {"counts", {64}}};
     },
     {0, kOtherSize},
     {0, ": masks of another size than their image, which nothing matches: 1 left out (first: annotation 10: "},
     {0, kOtherSize}},
    {"AnObjectWithoutMask",
     [](Json& truth) { truth["annotations"][0].erase("segmentation"); },
     {0, ": objects without a mask, from which no mask is learnt: 1 (first: "},
     {0, ": objects without a mask, ignored by mask metrics: 1 (first: annotation 10)"},
     kWritten},
    {"NoObjectWithAMask",
     [](Json& truth) {
       for (Json& object : truth["annotations"]) object["segmentation"] = Json::array();
     },
     {2, ": annotation 10 has no segmentation, nor has any other: masks cannot be scored"},
     {2, ": annotation 10 has no segmentation, nor has any other: masks cannot be scored"},
     kWritten},
    {"AnImageOfAnotherSize",
     [](Json& truth) { truth["images"][0]["width"] = 77; },
     {2, ".json: image 0: image 0.png: is 64x64 pixels large, its annotations are for 77x64"},
     {2, ".json: image 0: image 0.png: is 64x64 pixels large, its annotations are for 77x64"},
     {2, "/0.png: is 64x64 pixels large, "}},
};

class MaskRcnnAnnotations : public MaskRcnn {
 protected:
  std::string annotations(const std::string& split) const {
    return path("data/annotations/instances_" + split + ".json");
  }
  void change(const std::string& split, void (*by)(Json&)) const {
    Json truth = Json::parse(read_file(annotations(split)));
    by(truth);
    write_file(annotations(split), truth.dump());
  }
  // If the exit code is not 0, the output ends with error lines only.
  static void expect(const AnnotationFault::Outcome& expected, const std::string& program, const Words& words) {
    const ProgramResult result = run_program(program, words);
    EXPECT_EQ(result.code, expected.code) << result.out << result.err;
    EXPECT_NE((expected.code == 0 ? result.out + result.err : result.err).find(expected.part), std::string::npos)
        << expected.part << " is missing in\n"
        << result.out << result.err;
    if (expected.code == 0) return;
    const size_t error = result.err.find("error: ");
    ASSERT_NE(error, std::string::npos) << result.err;
    std::istringstream lines(result.err.substr(error));
    for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.starts_with("error: ")) << result.err;
    EXPECT_NE(result.err.find("/data/", error), std::string::npos) << "names no file: " << result.err;
  }
  Words eval_words() const {
    return joined_words(
        {"eval", "--load=" + weights("sound", 1), "--data_dir=" + path("data"), "--device=cpu", "--config",
         "PREPROC.TEST_SHORT_EDGE_SIZE=64", "PREPROC.TRAIN_SHORT_EDGE_SIZE=64", "PREPROC.MAX_SIZE=96"},
        kSmallDetector);
  }
  // COCO metrics by name, and reasons for undefined ones.
  Json score(const Json& results, const std::string& type = "bbox") const {
    write_file(path("R.json"), results.dump());
    const ProgramResult result = run_program(
        "dtrain-mask-rcnn",
        {"eval", "--annotations=" + annotations("val"), "--results=" + path("R.json"), "--iou_type=" + type, "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    const Json line = Json::parse(result.out);
    Json found = {{"why_absent", line.value("why_absent", Json::object())}};
    for (size_t i = 0; i < 12; ++i) found[line["names"][i].get<std::string>()] = line["stats"][i];
    return found;
  }
  void expect_refused(const Json& results, const std::string& type, const std::string& error) const {
    write_file(path("R.json"), results.dump());
    const ProgramResult result = run_program("dtrain-mask-rcnn", {"eval", "--annotations=" + annotations("val"),
                                                                  "--results=" + path("R.json"), "--iou_type=" + type});
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_EQ(result.err, "error: " + error + "\n");
  }
};

class MaskRcnnFaults : public MaskRcnnAnnotations, public testing::WithParamInterface<AnnotationFault> {};

TEST_P(MaskRcnnFaults, AreReported) {
  const AnnotationFault& fault = GetParam();
  ASSERT_EQ(run_program("dtrain-mask-rcnn", train_words("sound", 1)).code, 0);
  for (const char* split : {"train", "val"}) change(split, fault.change);
  expect(fault.train, "dtrain-mask-rcnn", train_words("run", 1));
  expect(fault.eval, "dtrain-mask-rcnn", eval_words());
  expect(fault.convert, "dtrain-data", {"coco", "--input=" + path("data"), "--output=" + path("out"), "--shards=1"});
  if (fault.convert.code == 0) expect({0, "12 records, 0 faults"}, "dtrain-data", {"verify", path("out")});
}

INSTANTIATE_TEST_SUITE_P(Annotations, MaskRcnnFaults, testing::ValuesIn(kAnnotationFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST_F(MaskRcnnAnnotations, OfAllSplitsHaveTheSameCategories) {
  change("val", [](Json& truth) {
    truth["categories"].erase(0);
    truth["annotations"].erase(0);
    truth["annotations"].erase(1);
    truth["annotations"].erase(2);
  });
  expect({2, "instances_val.json: category 1 of the detector is 7 (blue), expected 2 (red)"}, "dtrain-mask-rcnn",
         train_words("run", 1));
}

TEST_F(MaskRcnnAnnotations, AreScoredZeroByADetectorThatFindsNothing) {
  ASSERT_EQ(run_program("dtrain-mask-rcnn", train_words("sound", 1)).code, 0);
  Words words = eval_words();
  words.push_back("TEST.RESULT_SCORE_THRESH=1");  // finds nothing
  expect({0, "val-mAP(bbox)/IoU=0.5: 0.0000\n"}, "dtrain-mask-rcnn", words);
  expect({0, "val-mAP(segm)/medium: -1 (no ground truth of area medium)\n"}, "dtrain-mask-rcnn", words);
}

TEST_F(MaskRcnnAnnotations, AreScoredZeroByResultsWithoutOneOfTheirs) {
  const Json foreign = {{"image_id", 0}, {"category_id", 5}, {"bbox", {4, 30, 24, 20}}, {"score", 0.9}};
  for (const Json& results : {Json::array(), Json::array({foreign})}) {
    const Json found = score(results);
    for (const char* name : {"AP", "AP50", "AP75", "APs", "AR1", "AR10", "AR100", "ARs"}) EXPECT_EQ(found[name], 0);
    EXPECT_EQ(found["APl"], -1);
    EXPECT_EQ(found["why_absent"].value("APl", ""), "no ground truth of area large");
    EXPECT_EQ(found["why_absent"].size(), 4u) << found;
  }
  change("val", remove_objects);
  const Json found = score(Json::array());
  EXPECT_EQ(found["AP"], -1);
  EXPECT_EQ(found["why_absent"].value("AP", ""), "no ground truth");
  EXPECT_EQ(found["why_absent"].size(), 12u);
}

TEST_F(MaskRcnnAnnotations, AreNotScoredByResultsForOthers) {
  const Json sound = {{"image_id", 0}, {"category_id", 2}, {"bbox", {4, 30, 24, 20}}, {"score", 0.9}};
  const auto with = [&](const char* key, const Json& value) {
    Json wrong = sound;
    wrong[key] = value;
    return Json::array({sound, wrong});
  };
  const std::string where = path("R.json") + ": ";
  expect_refused(with("image_id", 99), "bbox",
                 where + "at index 1: a detection of image 99, which is not one of the ground truth's 6");
  expect_refused(with("image_id", "0.png"), "bbox",
                 where + "at index 1: a detection of image (a string as id), which is not one of the ground truth's 6");
  expect_refused(with("category_id", nullptr), "bbox",
                 where + "detection at index 1: category_id is null, expected a whole number or a string");
  Json other = sound;
  other.erase("bbox");
  other["segmentation"] = {{"size", {8, 8}}, {"counts", {64}}};
  for (const char* type : {"bbox", "segm"})
    expect_refused(Json::array({other}), type,
                   where + "at index 0: a detection of image 0: a mask of 8 x 8 pixels, expected 64 x 64");
}

}  // namespace
}  // namespace dtrain
