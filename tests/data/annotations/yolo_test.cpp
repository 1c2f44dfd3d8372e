// YOLO: layouts of Ultralytics, Roboflow, darknet and CVAT.
#include "tests/data/annotations/label_files.h"

namespace dtrain::data::annotations {
namespace {

class Yolo : public testing::Test {
 protected:
  // An image of 40x20 pixels with its file of labels.
  void place(const std::string& image, const std::string& labels, const std::string& text) const {
    folder.place_image(image, 40, 20);
    if (!labels.empty()) folder.place(labels, text);
  }
  std::vector<LabelledSplit> read(const std::string& place) const { return read_all(open_yolo(place, {})); }
  std::vector<LabelledSplit> read() const { return read(folder.path()); }
  // A set of one image with these lines.
  LabelledSplit of_lines(const std::string& lines, const std::string& more = "") const {
    place("images/train/a.png", "labels/train/a.txt", lines);
    folder.place("data.yaml", "train: images/train\nnames: [cat, dog]\n" + more);
    return read()[0];
  }
  void refuses(const std::string& yaml, const std::string& message) const {
    folder.place("data.yaml", yaml);
    expect_error([&] { read(); }, Fault::data, message);
  }

  LabelFolder folder;
};

TEST_F(Yolo, LayoutOfUltralytics) {
  place("images/train/b.png", "labels/train/b.txt", "0 0.5 0.5 0.25 0.5\r\n\n1 0.125 0.25 0.25 0.5\n");
  place("images/train/deep/a.png", "", "");
  place("images/val/c.png", "labels/val/c.txt", "1 .5 .5 1 1");
  folder.place("coco8.yaml",
               "path: ../datasets/coco8\ntrain: images/train\nval: images/val\ntest:\n"
               "names:\n  1: dog\n  0: cat\ndownload: https://x/coco8.zip\n");
  const auto splits = read();
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(names_of(splits[0]), (Texts{"images/train/b.png 40x20", "images/train/deep/a.png 40x20"}));
  EXPECT_EQ(objects_of(splits[0]), (Texts{"cat 15 5 10 10", "dog 0 0 10 10"}));
  EXPECT_EQ(objects_of(splits[1]), (Texts{"dog 0 0 40 20"}));
  EXPECT_EQ(splits[1].annotations.categories[1].id, 2);
  EXPECT_EQ(splits[0].annotations.findings.summary(),
            "images without a file of labels: 1 used without objects (first: images/train/deep/a.png)");
  EXPECT_EQ(names_of(read(folder.path("coco8.yaml"))[1]), names_of(splits[1])) << "the file instead of the folder";
}

TEST_F(Yolo, LayoutOfRoboflow) {
  place("train/images/a.png", "train/labels/a.txt", "0 .5 .5 .5 .5");
  place("valid/images/b.png", "valid/labels/b.txt", "0 .5 .5 .5 .5");
  folder.place("data.yaml",
               "train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnc: 1\nnames: ['cat']\n");
  const auto splits = read();
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(names_of(splits[1]), (Texts{"valid/images/b.png 40x20"}));
  EXPECT_EQ(splits[0].annotations.findings.summary(),
            concat("test splits whose images are missing: 1 left out (first: ", folder.path("data.yaml"),
                   ": ../test/images)"));
}

TEST_F(Yolo, ListsOfImagesAndAbsolutePaths) {
  place("images/train/a.png", "labels/train/a.txt", "0 .5 .5 .5 .5");
  place("images/train/b.png", "labels/train/b.txt", "0 .5 .5 .5 .5");
  folder.place("lists/train.txt", "/home/me/set/images/train/b.png\n../images/train/a.png\nimages/train/none.png\n");
  folder.place("data.yaml",
               "path: /home/me/set\ntrain: [lists/train.txt, images/train]\nval: images/train\nnames: {0: cat}\n");
  const auto splits = read();
  EXPECT_EQ(names_of(splits[0]), (Texts{"images/train/b.png 40x20", "images/train/a.png 40x20",
                                        "images/train/a.png 40x20", "images/train/b.png 40x20"}));
  ASSERT_EQ(splits[0].unusable.size(), 1u);
  EXPECT_EQ(splits[0].unusable[0].file, folder.path("images/train/none.png"));
}

TEST_F(Yolo, FilesOfDarknetAndCvat) {
  place("obj_train_data/a.png", "obj_train_data/a.txt", "1 .5 .5 .5 .5");
  folder.place("obj.data", "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n");
  folder.place("obj.names", "cat\nsea lion\n");
  folder.place("train.txt", "data/obj_train_data/a.png\n");
  EXPECT_EQ(objects_of(read()[0]), (Texts{"sea lion 10 5 20 10"}));
  for (const char* key : {"val", "valid", "Validation"}) {
    folder.place("obj.data", concat("train = data/train.txt\n", key, "=data/train.txt\nnames = data/obj.names\n"));
    ASSERT_EQ(read().size(), 2u) << key;
    EXPECT_EQ(read()[1].name, "val");
  }
  folder.place("obj.data", "val = data/train.txt\nvalid = data/train.txt\nnames = data/obj.names\n");
  expect_error([&] { read(); }, Fault::data, "obj.data: val and valid name one split");
}

TEST_F(Yolo, ClassesAreNumberedByLines) {
  place("a.png", "a.txt", "1 .5 .5 .5 .5");
  folder.place("classes.txt",
               "\xef\xbb\xbf"
               "cat\r\ndog\r\n\r\n \r\n");
  EXPECT_EQ(objects_of(read()[0]), (Texts{"dog 10 5 20 10"}));
  folder.place("classes.txt", "cat\n\ndog\n");
  expect_error([&] { read(); }, Fault::data, "classes.txt: line 2 is empty");
  folder.place("classes.txt", "cat\nd\xe9j\xe0 vu\n");
  expect_error([&] { read(); }, Fault::data, "the class name 'd\xe9j\xe0 vu' is not UTF-8");
}

TEST_F(Yolo, FoldersOfADataYamlWithoutSplits) {
  place("train/images/a.png", "train/labels/a.txt", "0 .5 .5 .5 .5");
  place("valid/images/b.png", "valid/labels/b.txt", "0 .5 .5 .5 .5");
  folder.place("data.yaml", "nc: 1\nnames: [cat]\n");
  EXPECT_EQ(names_of(read()[0]), (Texts{"train/images/a.png 40x20"}));
  EXPECT_EQ(names_of(read()[1]), (Texts{"valid/images/b.png 40x20"}));
}

TEST_F(Yolo, FilesOfLabelimg) {
  place("a.png", "a.txt", "0 .5 .5 .5 .5");
  folder.place("classes.txt", "cat\n");
  EXPECT_EQ(names_of(read()[0]), (Texts{"a.png 40x20"}));
  EXPECT_EQ(objects_of(read()[0]), (Texts{"cat 10 5 20 10"}));
  place("images/val/b.png", "labels/val/b.txt", "0 .5 .5 .5 .5");
  EXPECT_EQ(read()[0].name, "val");
}

TEST_F(Yolo, SegmentsAreObjectsWithPolygons) {
  const LabelledSplit split = of_lines("1 0.25 0.5 0.75 0.5 0.75 1\n0 0.5 0.5 0.5 0.5\n");
  EXPECT_EQ(objects_of(split), (Texts{"dog 10 10 20 10", "cat 10 5 20 10"}));
  EXPECT_EQ(std::get<coco::Polygons>(split.annotations.annotations[0].segmentation),
            (coco::Polygons{{10, 10, 30, 10, 30, 20}}));
  EXPECT_EQ(split.annotations.annotations[0].area,
            static_cast<double>(coco::area(coco::from_polygons({{{10, 10, 30, 10, 30, 20}}}, 20, 40))));
}

TEST_F(Yolo, KeypointsAreSkipped) {
  EXPECT_EQ(objects_of(of_lines("1 0.5 0.5 0.5 0.5 0.1 0.2 2 0.3 0.4 1\n", "kpt_shape: [2, 3]\n")),
            (Texts{"dog 10 5 20 10"}));
}

TEST_F(Yolo, UnusableLinesAreLeftOut) {
  const LabelledSplit split = of_lines(
      "2 .5 .5 .5 .5\n0.5 .5 .5 .5 .5\n-1 .5 .5 .5 .5\n0 .5 .5 .5\n0 .5 .5 .5 .5 .9\n0 nan .5 .5 .5\n0 x .5 .5 .5\n"
      "0 1.5 .5 .5 .5\n0 .5 -.1 .5 .5\n0 .5 .5 0 .5\n1 .5 .5 .5 .5\n1 0.5 0.5 0.5 0.5\n");
  EXPECT_EQ(objects_of(split), (Texts{"dog 10 5 20 10"}));
  EXPECT_EQ(split.annotations.findings.summary(),
            "objects of classes that are not listed: 3 left out (first: labels/train/a.txt: line 1: class 2 of 2); "
            "lines of other than 5 numbers, or a class and at least 3 corners: 2 left out (first: labels/train/a.txt: "
            "line 4); lines with words that are no finite numbers: 2 left out (first: labels/train/a.txt: line 6); "
            "lines with coordinates outside of 0 to 1: 2 left out (first: labels/train/a.txt: line 8); "
            "boxes without width or height: 1 left out (first: labels/train/a.txt: line 10); "
            "lines that repeat another one of their file: 1 left out (first: labels/train/a.txt: line 12)");
}

TEST_F(Yolo, UnusableFilesAreNamed) {
  of_lines("0 .5 .5 .5 .5");
  folder.place("images/train/b.png", "no image");
  folder.place("labels/train/b.txt", "0 .5 .5 .5 .5");
  ASSERT_EQ(read()[0].unusable.size(), 1u);
  EXPECT_EQ(read()[0].unusable[0].file, folder.path("images/train/b.png"));
}

TEST_F(Yolo, FaultsOfTheConfiguration) {
  expect_error([&] { read(); }, Fault::data, "no YOLO data set: expected data.yaml");
  refuses("names: [cat]\n", "data.yaml: names no images");
  place("images/train/a.png", "", "");
  refuses("train: images/train\nnames: [cat]\n", "none of the 1 images of the split train has a file of labels");
  refuses("train: images/none\nnames: [cat]\n", "data.yaml: no folder or list of images images/none in ");
  refuses("train:\nnames: [cat]\n", "data.yaml: names no images");
  refuses("train: images/train\n", "data.yaml: no names of classes");
  refuses("train: images/train\nnc: 2\nnames: [cat]\n", "data.yaml: nc is 2, but there are 1 names");
  refuses("train: images/train\nnames: {1: cat}\n", "data.yaml: names has the key '1', expected 0 to 0");
  refuses("train: images/train\nnames: [cat, [a]]\n", "data.yaml: the name of class 1 is no text");
  refuses("train: /etc\nnames: [cat]\n", "data.yaml: no folder or list of images /etc in ");
  folder.place("labels/train/a.txt", "");
  folder.place("data.yaml", "train: images/train\nnames: [cat, cat]\n");
  expect_error([&] { read(); }, Fault::data, "two classes have the name 'cat'");
  std::filesystem::remove(folder.path("data.yaml"));
  folder.place("a.yaml", "");
  folder.place("b.yaml", "");
  expect_error([&] { read(); }, Fault::data, "a.yaml and b.yaml; give the file instead of the folder");
}

}  // namespace
}  // namespace dtrain::data::annotations
