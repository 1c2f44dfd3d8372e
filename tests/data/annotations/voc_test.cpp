// PASCAL VOC.
#include "data/annotations/instance_masks.h"
#include "tests/data/annotations/label_files.h"

#include <boost/property_tree/ptree.hpp>

namespace dtrain::data::annotations {
namespace {

std::string object(const std::string& name, const std::string& box, const std::string& more = "") {
  std::string numbers;
  size_t begin = 0;
  for (const char* edge : {"xmin", "ymin", "xmax", "ymax"}) {
    const size_t end = std::min(box.find(' ', begin), box.size());
    numbers += concat("<", edge, ">", box.substr(begin, end - begin), "</", edge, ">\n");
    begin = end + 1;
  }
  return concat("<object>\n<name>", name, "</name><pose>Left</pose>", more, "<bndbox>", numbers,
                "</bndbox></object>\n");
}

std::string annotation(const std::string& objects, const std::string& size = "<width>40</width><height>30</height>",
                       const std::string& filename = "x.jpg") {
  return concat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- <object> -->\n<annotation verified=\"yes\"><folder>VOC"
      "</folder><filename>",
      filename, "</filename>\n<size>", size, "<depth>3</depth></size>", objects, "</annotation>\n");
}

// Images 1 and 2 train, 3 validates.
class Voc : public testing::Test {
 protected:
  Voc() {
    for (const char* id : {"1", "2", "3"}) {
      folder.place_image(concat("JPEGImages/", id, ".png"), 40, 30);
      folder.place(concat("Annotations/", id, ".xml"), annotation(object("cat", "1 1 40 30")));
    }
    folder.place("ImageSets/Main/train.txt", "2\n1\n");
    folder.place("ImageSets/Main/val.txt", "3  1\r\n\n");
  }
  std::vector<LabelledSplit> read(const LabelOptions& options = {}) const {
    return read_all(open_voc(folder.path(), options), options);
  }
  Texts objects(const std::string& xml, const LabelOptions& options = {}) const {
    folder.place("Annotations/2.xml", xml);
    std::vector<LabelledSplit> splits = read(options);
    std::erase_if(splits[0].annotations.annotations, [](const coco::Annotation& one) { return one.image != 0; });
    return objects_of(splits[0]);
  }
  // Findings about image 2.
  std::string findings(const std::string& xml, const LabelOptions& options = {}) const {
    folder.place("Annotations/2.xml", xml);
    return read(options)[0].annotations.findings.summary();
  }
  std::string problem(const std::string& xml) const {
    folder.place("Annotations/2.xml", xml);
    const std::vector<BadRecord> unusable = read()[0].unusable;
    return unusable.empty() ? "" : unusable[0].file.substr(folder.path().size() + 1) + ": " + unusable[0].reason;
  }

  LabelFolder folder;
};

TEST_F(Voc, BoxesAreInclusiveAndBeginAtOne) {
  const auto splits = read();
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_EQ(splits[1].name, "val");
  EXPECT_EQ(names_of(splits[0]), (Texts{"JPEGImages/2.png 40x30", "JPEGImages/1.png 40x30"}));
  EXPECT_EQ(objects_of(splits[1]), (Texts{"cat 0 0 40 30"}));
  EXPECT_EQ(splits[1].annotations.images[0].id, 3);
  EXPECT_EQ(splits[1].annotations.annotations[0].id, 3);
  EXPECT_EQ(splits[1].annotations.annotations[0].area, 1200);
}

TEST_F(Voc, OtherConventionsOfBoxes) {
  const std::string xml = annotation(object("cat", "3 4.5 13 24.5"));
  EXPECT_EQ(objects(xml), (Texts{"cat 2 3.5 11 21"}));
  EXPECT_EQ(objects(xml, {.voc_boxes = VocBoxes::one_based}), (Texts{"cat 2 3.5 10 20"}));
  EXPECT_EQ(objects(xml, {.voc_boxes = VocBoxes::zero_based}), (Texts{"cat 3 4.5 10 20"}));
}

TEST_F(Voc, DifficultObjects) {
  const std::string xml = annotation(object("cat", "1 1 9 9", "<truncated>1</truncated><difficult>1</difficult>") +
                                     object("dog", "1 1 9 9", "<difficult>0</difficult>"));
  EXPECT_EQ(objects(xml), (Texts{"cat 0 0 9 9 crowd", "dog 0 0 9 9"}));
  EXPECT_EQ(objects(xml, {.difficult = Difficult::keep}), (Texts{"cat 0 0 9 9", "dog 0 0 9 9"}));
  EXPECT_EQ(objects(xml, {.difficult = Difficult::drop}), (Texts{"dog 0 0 9 9"}));
  EXPECT_EQ(findings(xml), "objects with difficult: 1: 1 marked as crowds (first: Annotations/2.xml: object 1)");
}

TEST_F(Voc, UnusableObjectsAreLeftOut) {
  const std::string bad = object("cat", "9 1 3 9") + object("cat", "nan 1 3 9") + object("cat", "x 1 3 9") +
                          object("cat", "5 5 4 9") + object("cat", "50 1 60 9") + "<object><name>cat</name></object>" +
                          object("", "1 1 2 2") + object("dog", "1 1 2 2");
  EXPECT_EQ(objects(annotation(bad)), (Texts{"dog 0 0 2 2"}));
  EXPECT_EQ(findings(annotation(bad)),
            "boxes of negative width or height: 1 left out (first: Annotations/2.xml: object 1); "
            "boxes with numbers that are not finite or beyond 1e9: 2 left out (first: Annotations/2.xml: object 2); "
            "boxes without width or height: 1 left out (first: Annotations/2.xml: object 4); "
            "boxes outside of their image: 1 left out (first: Annotations/2.xml: object 5); "
            "objects without name or bndbox: 2 left out (first: Annotations/2.xml: object 6)");
}

TEST_F(Voc, PartsAreNoObjects) {
  EXPECT_EQ(
      objects(annotation(object("man", "1 1 9 9", "<part><name>head</name><bndbox><xmin>2</xmin></bndbox></part>"))),
      (Texts{"man 0 0 9 9"}));
}

TEST_F(Voc, ChosenClassesInTheirOrder) {
  const LabelOptions options{.classes = {"dog", "cat"}};
  EXPECT_EQ(objects(annotation(object("dog", "1 1 9 9") + object("cow", "1 1 9 9")), options), (Texts{"dog 0 0 9 9"}));
  const auto splits = read(options);
  EXPECT_EQ(splits[0].annotations.categories[0].name, "dog");
  EXPECT_EQ(splits[0].annotations.categories[0].id, 1);
  EXPECT_EQ(splits[0].annotations.findings.summary(),
            "objects of classes that are not listed: 1 left out (first: Annotations/2.xml: object 2: 'cow')");
}

TEST_F(Voc, MissingSizesAreMeasured) {
  const std::string xml = annotation(object("cat", "1 1 9 9"), "<width>0</width><height>0</height>");
  EXPECT_EQ(objects(xml), (Texts{"cat 0 0 9 9"}));
  EXPECT_EQ(names_of(read()[0])[0], "JPEGImages/2.png 40x30");
  EXPECT_EQ(findings(xml), "images without width and height: 1 measured (first: Annotations/2.xml)");
}

TEST_F(Voc, ImagesAreFoundByTheirStemOrFilename) {
  std::filesystem::rename(folder.path("JPEGImages/2.png"), folder.path("JPEGImages/other.PNG"));
  EXPECT_EQ(problem(annotation("")),
            concat("Annotations/2.xml: no image 2 or 'x.jpg' in ", folder.path(), "/JPEGImages"));
  EXPECT_EQ(problem(annotation("", "", "C:\\a\\other.PNG")), "");
  EXPECT_EQ(names_of(read()[0])[0], "JPEGImages/other.PNG 40x30");
  EXPECT_EQ(problem(annotation("", "", "other")), "");
}

TEST_F(Voc, UnusableFilesAreNamed) {
  EXPECT_EQ(problem("<annotation>"), "Annotations/2.xml: line 1: unexpected end of data, expected XML");
  EXPECT_EQ(problem("<a></a>"), "Annotations/2.xml: no element annotation, expected an annotation of PASCAL VOC");
  EXPECT_EQ(problem("<!DOCTYPE a [<!ENTITY b \"c\">]><annotation/>"),
            "Annotations/2.xml: line 1: an internal DTD, which is not supported; remove it");
}

TEST_F(Voc, ListedImagesWithoutAnXmlFileHaveNoObjects) {
  std::filesystem::remove(folder.path("Annotations/2.xml"));
  const auto splits = read();
  EXPECT_EQ(names_of(splits[0]), (Texts{"JPEGImages/2.png 40x30", "JPEGImages/1.png 40x30"}));
  EXPECT_EQ(objects_of(splits[0]), (Texts{"cat 0 0 40 30"}));
  EXPECT_EQ(splits[0].annotations.findings.summary(),
            "images without an XML file: 1 used without objects (first: Annotations/2.xml)");
  folder.place("ImageSets/Main/test.txt", "2");
  ASSERT_EQ(read().size(), 2u);
  EXPECT_EQ(read()[0].annotations.findings.summary(),
            concat("images without an XML file: 1 used without objects (first: Annotations/2.xml); "
                   "test splits without XML files: 1 left out (first: ",
                   folder.path("ImageSets/Main/test.txt"), ")"));
  std::filesystem::remove(folder.path("JPEGImages/2.png"));
  EXPECT_EQ(read()[0].unusable[0].file, folder.path("Annotations/2.xml"));
  std::filesystem::remove(folder.path("Annotations/1.xml"));
  expect_error([&] { read(); }, Fault::data, "train.txt: none of the 2 images of the split train has an XML file");
}

TEST_F(Voc, NamesInListsMayHaveSpaces) {
  for (const char* id : {"photo 1", "photo"}) {
    folder.place_image(concat("JPEGImages/", id, ".png"), 40, 30);
    folder.place(concat("Annotations/", id, ".xml"), annotation(object("cat", "1 1 40 30")));
  }
  folder.place("ImageSets/Main/train.txt", "photo 1\nphoto  -1\n2 0\nphoto 2\n");
  folder.place_image("JPEGImages/photo 2.png", 40, 30);
  EXPECT_EQ(names_of(read()[0]), (Texts{"JPEGImages/photo 1.png 40x30", "JPEGImages/photo.png 40x30",
                                        "JPEGImages/2.png 40x30", "JPEGImages/photo 2.png 40x30"}));
}

TEST_F(Voc, SplitsByWhatIsThere) {
  std::filesystem::remove(folder.path("ImageSets/Main/train.txt"));
  EXPECT_EQ(read().size(), 1u);
  std::filesystem::remove(folder.path("ImageSets/Main/val.txt"));
  folder.place("ImageSets/Main/trainval.txt", "1");
  folder.place("ImageSets/Main/test.txt", "2");
  EXPECT_EQ(read()[0].name + read()[1].name, "traintest");
  std::filesystem::remove_all(folder.path("ImageSets"));
  EXPECT_EQ(names_of(read().at(0)).size(), 3u) << "all files";
  folder.place("ImageSets/Main/train.txt", "../../secret");
  expect_error([&] { read(); }, Fault::data, "train.txt: line 1: the name leads out of Annotations");
}

TEST_F(Voc, XmlFilesBesideImages) {
  LabelFolder flat;
  for (const char* split : {"train", "valid"}) {
    flat.place_image(concat(split, "/a.jpg"), 20, 10);
    flat.place(concat(split, "/a.xml"), annotation(object("cat", "1 1 2 2"), ""));
  }
  const auto splits = read_all(open_voc(flat.path(), {}));
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[1].name, "val");
  EXPECT_EQ(names_of(splits[1]), (Texts{"valid/a.jpg 20x10"}));
  EXPECT_EQ(names_of(read_all(open_voc(flat.path("train"), {}))[0]), (Texts{"a.jpg 20x10"}));
  expect_error([&] { open_voc(folder.path("JPEGImages"), {}); }, Fault::data, "no VOC data set");
  flat.place("kit/VOC2012/Annotations/x.xml", "");
  expect_error([&] { open_voc(flat.path("kit"), {}); }, Fault::data, "kit/VOC2012");
}

TEST_F(Voc, XmlFilesWithAnExtensionInUpperCase) {
  LabelFolder flat;
  flat.place_image("A.JPG", 20, 10);
  flat.place("A.XML", annotation(object("cat", "1 1 2 2"), ""));
  EXPECT_EQ(names_of(read_all(open_voc(flat.path(), {}))[0]), (Texts{"A.JPG 20x10"}));
}

TEST_F(Voc, SegmentationObject) {
  // Object 1 covers its box but for an outline, object 2 has no pixels, object 3 those of another box.
  std::vector<uint8_t> pixels(40 * 30);
  for (int y = 10; y < 20; ++y)
    for (int x = 5; x < 25; ++x) pixels[static_cast<size_t>(40 * y + x)] = y == 10 ? 255 : 1;
  pixels[0] = 3;
  folder.place("SegmentationObject/2.png", encode_grey_png(pixels, 40, 30));
  const std::string xml =
      annotation(object("cat", "6 11 25 20") + object("dog", "1 1 9 9") + object("cow", "30 20 40 30"));
  EXPECT_EQ(objects(xml), (Texts{"cat 5 10 20 10", "dog 0 0 9 9", "cow 29 19 11 11"}));
  const auto splits = read();
  const coco::Annotation& cat = splits[0].annotations.annotations[0];
  EXPECT_EQ(cat.area, 180) << "of the mask";
  EXPECT_EQ(coco::bounds(std::get<coco::Rle>(cat.segmentation)), (coco::BoundingBox{5, 11, 20, 9}));
  EXPECT_EQ(splits[0].annotations.annotations[1].segmentation.index(), 0u);
  EXPECT_EQ(splits[0].annotations.findings.summary(),
            "objects that SegmentationObject lacks: 1 used without a mask (first: Annotations/2.xml: object 2); "
            "masks of SegmentationObject that do not fit the box: 1 left out (first: Annotations/2.xml: object 3)");
  EXPECT_EQ(read({.masks = false})[0].annotations.annotations[0].segmentation.index(), 0u);
  folder.place("SegmentationObject/2.png", encode_grey_png(std::vector<uint8_t>(6), 3, 2));
  EXPECT_NE(findings(xml).find("2.png: is 3x2 pixels large, its image is 40x30"), std::string::npos) << findings(xml);
}

TEST(InstanceMasks, ReadVocsColours) {
  Image image(3, 1);
  const uint8_t colours[] = {128, 0, 0, 224, 224, 192, 0, 128, 0};  // 1, outline, 2
  std::ranges::copy(colours, image.pixels.begin());
  const auto masks = parse_instance_masks(encode_png(image.view()), "a.png", {1, 3});
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_EQ(masks[0].counts, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(masks[1].counts, (std::vector<uint32_t>{2, 1}));
  image.pixels[1] = 7;
  expect_error(
      [&] {
        parse_instance_masks(encode_png(image.view()), "a.png", {1, 3});
      },
      Fault::data, "a.png: the colour 128, 7, 0 at 0, 0 is not in VOC's palette");
}

}  // namespace
}  // namespace dtrain::data::annotations
