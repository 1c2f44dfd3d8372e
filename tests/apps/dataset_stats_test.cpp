// dtrain-data stats and show, on detection data sets.
#include <nlohmann/json.hpp>

#include "apps/mask_rcnn/canvas.h"
#include "dtrain/data/image.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/coco_folder.h"

namespace dtrain {
namespace {

class DatasetStats : public DatasetProgram {
 protected:
  data::Image picture(const std::string& name) const {
    const std::string bytes = contents(root / name);
    data::ImageDecoder decoder;
    decoder.open(std::as_bytes(std::span(bytes)));
    const data::ImageView view = decoder.decode();
    data::Image image(view.width, view.height);
    std::copy_n(view.pixels, 3 * view.width * view.height, image.pixels.begin());
    return image;
  }
  const data::CocoFolder coco;
  const std::string folder = "'" + coco.root() + "' ";
};

TEST_F(DatasetStats, CountsImagesObjectsAndAreas) {
  const Outcome outcome = run("stats " + folder + "--json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json all = nlohmann::json::parse(outcome.out), train = all["splits"][0];
  EXPECT_EQ(all["splits"].size(), 2u);
  EXPECT_EQ(train["name"], "train");
  EXPECT_EQ(train["images"], 7);
  EXPECT_EQ(train["empty_images"], 1);
  EXPECT_EQ(train["objects"], 9);
  EXPECT_EQ(train["crowds"], 2);
  EXPECT_EQ(train["masks"], 9);
  EXPECT_EQ(train["width"], nlohmann::json::parse(R"({"min": 20, "median": 40, "max": 50})"));
  EXPECT_EQ(train["height"], nlohmann::json::parse(R"({"min": 20, "median": 31, "max": 40})"));
  EXPECT_EQ(train["areas"], nlohmann::json::parse(R"({"small": 8, "medium": 1, "large": 0})")) << "1024 is medium";
  EXPECT_EQ(train["classes"], nlohmann::json::parse(R"([{"id": 5, "name": "cat", "objects": 6, "images": 5},
                                                         {"id": 9, "name": "dog", "objects": 3, "images": 3}])"));
  EXPECT_EQ(all["duplicates"].size(), 7u) << "both splits have the same images";
  EXPECT_EQ(all["duplicates"][0]["in_several_splits"], true);
}

TEST_F(DatasetStats, NamesDuplicates) {
  std::filesystem::remove(coco.annotations("val"));
  std::filesystem::copy(coco.folder() + "/im3.png", coco.folder() + "/im6.png",
                        std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(coco.folder() + "/im9.png");
  const Outcome outcome = run("stats " + folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& part :
       {std::string("train: 7 images, 9 objects, "),
        std::string("  images without objects: 1; that cannot be used: 0\n"),
        std::string("       5         6         5  cat\n"),
        concat("images with the bytes of another one: 1; groups of them in several splits: 0\n  ", coco.folder(),
               "/im3.png = ", coco.folder(), "/im6.png\n"),
        std::string("image files that cannot be read: 1\n")})
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in\n" << outcome.out;
  expect("stats", 1, "expected one folder");
  expect("stats none", 2, "none: cannot list the directory");
}

TEST_F(DatasetStats, ShowDrawsBoxesAndMasks) {
  const std::string command = "show " + folder + "--output=sheet.png --tile=100 ";
  expect(command + "--images=5 --columns=3", 0, "sheet.png: 5 of 7 images of train");
  const data::Image sheet = picture("sheet.png");
  EXPECT_EQ(sheet.width, 8 + 3 * 108);
  EXPECT_EQ(sheet.height, 8 + 2 * (100 + 8 + 8 + 14)) << "two rows with titles";
  // Image 6 alone, whose crowd is of the first class: 40x20 pixels at a scale of 2.5.
  write_file(coco.annotations(), R"({"images":[{"id":6,"file_name":"im6.png","width":40,"height":20}],
    "categories":[{"id":5,"name":"cat"}],"annotations":[{"id":1,"image_id":6,"category_id":5,"iscrowd":0,"area":100,
    "bbox":[10,4,20,12],"segmentation":[[10,4,30,4,30,16,10,16]]}]})");
  expect(command, 0, "sheet.png: 1 of 1 images of train");
  const data::Image one = picture("sheet.png");
  const int top = 8 + 14 + 8;
  const auto at = [&](int x, int y) {
    const uint8_t* pixel = one.view().row(top + y) + 3 * (8 + x);
    return mask_rcnn::Color{pixel[0], pixel[1], pixel[2]};
  };
  EXPECT_EQ(at(50, 39), mask_rcnn::color_of_class(1)) << "the lower edge of the box";
  EXPECT_EQ(at(74, 30), mask_rcnn::color_of_class(1)) << "the right edge";
  EXPECT_FALSE(at(90, 30) == mask_rcnn::color_of_class(1)) << "beside it";
}

TEST_F(DatasetStats, ShowNamesUnusableImages) {
  write_file(coco.folder() + "/im4.png", "no image");
  expect("show " + folder + "--output=sheet.png", 2, "error: ");
  EXPECT_TRUE(std::filesystem::exists(root / "sheet.png"));
  expect("show " + folder, 1, "--output is missing");
  expect("show " + folder + "--output=sheet.png --split=test", 1,
         "--split=test: no such split; the first one is train");
}

}  // namespace
}  // namespace dtrain
