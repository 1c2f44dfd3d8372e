// dtrain-data coco --from and --to: other formats than COCO's, and its layouts.
#include <nlohmann/json.hpp>

#include "apps/detection/splits.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/png.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/coco_folder.h"
#include "tests/data/noise.h"

namespace dtrain {
namespace {

class DatasetFormats : public DatasetProgram {
 protected:
  void place_image(const std::string& name, int width = 40, int height = 30) const {
    place_file(root / name, text_of(data::encode_png(data::noise(width, height, 1).view())));
  }
  // VOC: image a trains, b validates.
  void place_voc(const std::string& a_width = "40") const {
    for (const std::string id : {"a", "b"}) {
      place_image("voc/JPEGImages/" + id + ".png");
      place_file(root / ("voc/Annotations/" + id + ".xml"),
                 concat("<annotation><size><width>", id == "a" ? a_width : "40",
                        "</width><height>30</height></size><object><name>cat</name><bndbox><xmin>3</xmin><ymin>5</ymin>"
                        "<xmax>12</xmax><ymax>20</ymax></bndbox></object><object><name>cat</name><bndbox><xmin>9</xmin>"
                        "<ymin>1</ymin><xmax>3</xmax><ymax>9</ymax></bndbox></object></annotation>"));
      place_file(root / concat("voc/ImageSets/Main/", id == "a" ? "train" : "val", ".txt"), id);
    }
  }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(contents(root / name)); }
};

TEST_F(DatasetFormats, FilesInCocosLayout) {
  place_voc();
  const Outcome outcome = run("coco --from=voc voc --output=out --to=json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out,
                       "train: 1 images with 1 objects, out/train and out/annotations/instances_train.json\n"
                       "val: 1 images with 1 objects, out/val and out/annotations/instances_val.json\n"))
      << outcome.out;
  EXPECT_TRUE(contains(outcome.err,
                       "voc/ImageSets/Main/train.txt: boxes of negative width or height: 1 left out (first: "
                       "Annotations/a.xml: object 2)"))
      << outcome.err;
  const nlohmann::json train = json("out/annotations/instances_train.json");
  EXPECT_EQ(train["images"][0], nlohmann::json::parse(R"({"id": 1, "file_name": "a.png", "width": 40, "height": 30})"));
  EXPECT_EQ(train["annotations"][0]["bbox"], nlohmann::json::parse("[2, 4, 10, 16]"));
  EXPECT_EQ(train["categories"], nlohmann::json::parse(R"([{"id": 1, "name": "cat"}])"));
  EXPECT_EQ(contents(root / "out/train/a.png"), contents(root / "voc/JPEGImages/a.png"));
  expect("check out", 0, "0 faults");
  expect("coco --from=voc voc --output=out --to=json", 1, "out: is there already");
  ASSERT_EQ(run("coco --from=voc voc --output=links --to=json --link_images").code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(root / "links/val/b.png"));
  EXPECT_EQ(contents(root / "links/val/b.png"), contents(root / "voc/JPEGImages/b.png"));
}

TEST_F(DatasetFormats, Records) {
  place_voc();
  expect("coco --from=voc --input=voc --output=out --shards=1", 0, "validation: 1 images in 1 shards");
  expect("verify out", 0, "2 files, 2 records, 0 faults, 0 damaged images");
}

TEST_F(DatasetFormats, BadImagesAndObjectsHaveAPolicy) {
  place_voc("41");
  const std::string command = "coco --from=voc voc --output=out --to=json ";
  expect(command, 2, "JPEGImages/a.png: is 40x30 pixels large, voc/ImageSets/Main/train.txt has it as 41x30");
  EXPECT_FALSE(std::filesystem::exists(root / "out"));
  expect(command + "--on_bad_image=list", 2, "2 images, 1 of them cannot be used");
  EXPECT_FALSE(std::filesystem::exists(root / "out"));
  expect(command + "--strict", 2, "error: voc/ImageSets/Main/train.txt: boxes of negative width or height: 1 (first: ");
  place_file(root / "voc/Annotations/b.xml", "<annotation");
  expect("coco --from=voc voc --output=records", 2, "voc/Annotations/b.xml: line 1: a tag without '>'");
  expect(command + "--on_bad_image=skip", 0, "2 of 2 images left out, listed in out/skipped.json");
  EXPECT_EQ(json("out/skipped.json")["skipped"].size(), 2u);
  EXPECT_EQ(json("out/annotations/instances_train.json")["annotations"].size(), 0u);
  expect("coco --from=voc none --output=x", 2, "none");
  expect("coco voc yolo --output=x", 1, "several folders are given");
  expect("coco voc --output=x --link_images", 1, "--link_images: expected --to=json");
}

TEST_F(DatasetFormats, YoloAndLabelme) {
  place_image("yolo/images/train/a.png");
  place_file(root / "yolo/labels/train/a.txt", "1 0.5 0.5 0.5 0.2\n");
  place_file(root / "yolo/data.yaml", "train: images/train\nnames: [cat, dog]\n");
  expect("coco --from=yolo yolo --output=out --to=json", 0, "train: 1 images with 1 objects");
  EXPECT_EQ(json("out/annotations/instances_train.json")["annotations"][0]["bbox"],
            nlohmann::json::parse("[10, 12, 20, 6]"));
  place_file(root / "lm/a.json",
             R"({"shapes": [{"label": "cat", "points": [[1, 2], [4, 6]], "shape_type": "rectangle"}],
                                     "imagePath": "a.png", "imageData": "R0lGODdhAQABAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=",
                                     "imageHeight": 1, "imageWidth": 1})");
  expect("coco --from=labelme lm --output=lm_out --to=json --classes=labels.txt", 2, "labels.txt");
  place_file(root / "labels.txt", "__ignore__\n_background_\ncat\n");
  expect("coco --from=labelme lm --output=lm_out --to=json --classes=labels.txt", 0, "boxes outside of their image: 1");
  EXPECT_EQ(listing(root / "lm_out/train"), std::vector<std::string>{"a.gif"}) << "embedded";
  EXPECT_EQ(json("lm_out/annotations/instances_train.json")["categories"].size(), 1u);
}

TEST_F(DatasetFormats, NumbersRepeatedNamesInOrder) {
  nlohmann::json set = {{"categories", nlohmann::json::array()}, {"annotations", nlohmann::json::array()}};
  for (const char* name : {"a.png", "a.png", "a_2.png", "a.png"})
    set["images"].push_back({{"id", set["images"].size() + 1}, {"file_name", name}, {"width", 40}, {"height", 30}});
  place_file(root / "in/annotations/instances_train.json", set.dump());
  place_image("in/train/a.png");
  place_image("in/train/a_2.png");
  expect("coco in --output=out --to=json", 0, "train: 4 images with 0 objects");
  const std::vector<std::string> expected = {"a.png", "a_2.png", "a_2_2.png", "a_3.png"};
  EXPECT_EQ(listing(root / "out/train"), expected);
  std::vector<std::string> names;
  const nlohmann::json written = json("out/annotations/instances_train.json");
  for (const nlohmann::json& image : written["images"]) names.push_back(image["file_name"]);
  EXPECT_EQ(names, expected);
}

// The files of CocoFolder in the layouts of other tools.
class CocoLayouts : public DatasetFormats {
 protected:
  void place_layout(const std::string& annotations, const std::string& images, const std::string& split) const {
    std::filesystem::create_directories((root / annotations).parent_path());
    std::filesystem::create_directories((root / images).parent_path());
    std::filesystem::copy(coco.annotations(split), root / annotations);
    std::filesystem::copy(coco.folder(split), root / images);
  }
  const data::CocoFolder coco;
};

TEST_F(CocoLayouts, Roboflow) {
  for (const char* split : {"train", "valid", "test"})
    place_layout(concat("in/", split, "/_annotations.coco.json"), concat("in/", split, "/"),
                 split[0] == 'v' ? "val" : "train");
  std::filesystem::remove(root / "in/train/im4.png");
  expect("coco in --output=out --shards=1", 2, "in/train/im4.png");
  std::filesystem::copy(coco.folder() + "/im4.png", root / "in/train/im4.png");
  const Outcome outcome = run("coco in --output=out --shards=1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"train: 7 images", "validation: 7 images", "test: 7 images"})
    EXPECT_TRUE(contains(outcome.out, line)) << outcome.out;
  const std::string folder = (root / "in").string();
  EXPECT_EQ(detection::annotated_splits(folder, "val"), std::vector<std::string>{"valid"});
  EXPECT_EQ(detection::annotations_in(folder, "valid"), folder + "/valid/_annotations.coco.json");
  EXPECT_EQ(detection::images_in(folder, "valid"), folder + "/valid");
  expect("coco in/train --output=flat --shards=1", 0, "train: 7 images");
  expect("check in", 0, "0 faults");
}

TEST_F(CocoLayouts, Cvat) {
  place_layout("in/annotations/instances_Train.json", "in/images/Train", "train");
  place_layout("in/annotations/instances_Validation.json", "in/images/Validation", "val");
  expect("coco in --output=out --shards=1", 0, "validation: 7 images");
  const std::string folder = (root / "in").string();
  EXPECT_EQ(detection::annotated_splits(folder, "train"), std::vector<std::string>{"Train"});
  EXPECT_EQ(detection::images_in(folder, "Train"), folder + "/images/Train");
  place_layout("task/annotations/instances_default.json", "task/images", "train");
  expect("coco task --output=task_out --shards=1", 0, "train: 7 images");
  const std::string task = (root / "task").string();
  EXPECT_EQ(detection::annotated_splits(task, "train"), std::vector<std::string>{"default"});
  EXPECT_EQ(detection::images_in(task, "default"), task + "/images");
  expect_error([&] { detection::annotated_splits(task, "val"); }, Fault::data,
               "annotations: no file instances_*val*.json, and no ");
  place_file(root / "task/annotations/instances_trainval.json", "{}");
  EXPECT_EQ(detection::annotated_splits(task, "train"), std::vector<std::string>{"trainval"});
  EXPECT_FALSE(detection::has_annotated_split(task, "val")) << "it would be training data";
}

}  // namespace
}  // namespace dtrain
