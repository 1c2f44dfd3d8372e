// Label files in common formats: byte order marks, descriptions, image names, and errors.
#include "data/label_file.h"

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

using Names = std::vector<std::string>;

class LabelFile : public testing::Test {
 protected:
  std::string place(const std::string& bytes) const {
    const std::string path = (folder / "labels.txt").string();
    write_file(path, bytes);
    return path;
  }
  Names classes(const std::string& bytes, const Names& known = {"n01", "n02"}) const {
    return read_class_list(place(bytes), known);
  }
  void refuses_classes(const std::string& bytes, const std::string& part) const {
    expect_error([&] { classes(bytes); }, Fault::data, "labels.txt: " + part);
  }
  // Classes of the images 1.JPEG, 2.JPEG and 3.JPEG.
  std::string labels(const std::string& bytes, const Names& known = {"n01", "n02"}) const {
    std::vector<TreeImage> images;
    for (const char* name : {"1.JPEG", "2.JPEG", "3.JPEG"}) images.push_back({.filename = name});
    label_by_lines(images, known, 1, place(bytes), "val");
    std::string all;
    for (const TreeImage& image : images) all += concat(image.synset, "/", image.label, " ");
    return all;
  }
  void refuses_labels(const std::string& bytes, const std::string& part) const {
    expect_error([&] { labels(bytes); }, Fault::data, "labels.txt: " + part);
  }

  TempDirectory folder;
};

TEST_F(LabelFile, ListsClassesWithOrWithoutDescriptions) {
  const Names both = {"n02", "n01"};
  EXPECT_EQ(classes("\xef\xbb\xbfn02\r\n\r\n n01 \r\n"), both);
  EXPECT_EQ(classes("n02 goldfish, Carassius auratus\nn01 tench, Tinca tinca\n"), both);
  EXPECT_EQ(classes("n02\tgoldfish\nn01\ttench"), both);
  EXPECT_EQ(classes("n02,goldfish\nn01,tench\n"), both);
  EXPECT_EQ(classes("sea lion\nlion\n", {"lion", "sea lion"}), (Names{"sea lion", "lion"})) << "names with blanks";
  EXPECT_EQ(classes("n01\nn02\nn03\n").size(), 3u) << "a class without images";
}

TEST_F(LabelFile, ClassErrorsNameFileAndLine) {
  refuses_classes("\n\nx\ny\n", "line 3: 'x' is no class that has images, and neither is any other line");
  refuses_classes("n01\nn02\nn01\n", "line 3: class n01 is listed twice");
  refuses_classes("n01 tench\n", "has no line for n02, which has images");
  refuses_classes("", "lists no class");
  refuses_classes(std::string("\xff\xfen\0\x30\0\x31\0", 8), "line 1: is text in UTF-16; save it as UTF-8");
  refuses_classes(std::string("n01\nn\0\x30\0", 8), "line 2: has a byte of 0");
  refuses_classes("<!DOCTYPE html><html>", "line 1: is an HTML page");
  refuses_classes("version https://git-lfs.github.com/spec/v1\n", "line 1: is a Git LFS pointer");
}

TEST_F(LabelFile, LabelsByOrderOrName) {
  const std::string expected = "n02/2 n01/1 n02/2 ";
  EXPECT_EQ(labels("n02\nn01\nn02\n"), expected);
  EXPECT_EQ(labels("\xef\xbb\xbfn02 goldfish\r\nn01 tench\r\nn02 goldfish\r\n"), expected);
  EXPECT_EQ(labels("2.JPEG\tn01\t0\t1\t30\n1.JPEG\tn02\t0\t0\t9\n3.JPEG\tn02\t0\t0\t9\n"), expected);
  EXPECT_EQ(labels("ImageId,PredictionString\n3,n02 85 1 499 272\n1,n02 1 2 3 4 n02 5 6 7 8\n2,n01 1 1 2 2\n"),
            expected);
  EXPECT_EQ(labels("1\n2\n1\n", {"2", "1"}), "1/2 2/1 1/2 ") << "classes that look like names of images";
}

TEST_F(LabelFile, LabelErrorsNameFileAndLine) {
  refuses_labels("n01\nn02\n", "2 lines, expected one for each of the 3 images in val");
  refuses_labels("n01\nn02\n490\n",
                 "line 3: 490 is not one of the 2 classes; the numbers of ImageNet's development kit");
  refuses_labels("1.JPEG n01\n2.JPEG n01\n", "has no line for 3.JPEG in val");
  refuses_labels("1.JPEG n01\n1.JPEG n01\n", "line 2: '1.JPEG' is listed twice");
  refuses_labels("1.JPEG n01\n4.JPEG n01\n", "line 2: '4.JPEG' is no image in val");
  refuses_labels("1.JPEG n01\n2.JPEG n09\n", "line 2: n09 is not one of the 2 classes");
}

}  // namespace
}  // namespace dtrain::data
