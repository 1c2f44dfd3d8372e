// labelme.
#include "data/annotations/labelme.h"

#include "data/annotations/base64.h"
#include "tests/data/annotations/label_files.h"

namespace dtrain::data::annotations {
namespace {

std::string base64(const std::vector<std::byte>& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (const std::byte byte : bytes) {
    bits = (bits << 8) | std::to_integer<uint32_t>(byte);
    for (count += 8; count >= 6; count -= 6) text += kDigits[(bits >> (count - 6)) & 63];
  }
  if (count > 0) text += kDigits[(bits << (6 - count)) & 63];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::string shape(const std::string& label, const std::string& type, const std::string& points,
                  const std::string& group = "null", const std::string& more = "") {
  return concat(R"({"label": ")", label, R"(", "points": )", points, R"(, "group_id": )", group, R"(, "shape_type": ")",
                type, R"(", "flags": {})", more, "}");
}

std::string file(const std::string& shapes, const std::string& image = "a.png", const std::string& data = "null",
                 const std::string& size = R"("imageHeight": 30, "imageWidth": 40)") {
  return concat(R"({"version": "5.4.1", "flags": {}, "shapes": [)", shapes, R"(], "imagePath": ")", image,
                R"(", "imageData": )", data, ", ", size, "}");
}

class Labelme : public testing::Test {
 protected:
  Labelme() { folder.place_image("a.png", 40, 30); }
  std::vector<LabelledSplit> read() const { return read_all(open_labelme(folder.path(), {})); }
  LabelledSplit of_shapes(const std::string& shapes) const {
    folder.place("a.json", file(shapes));
    return read()[0];
  }
  std::string problem(const std::string& json) const {
    folder.place("a.json", json);
    const std::vector<BadRecord> unusable = read()[0].unusable;
    return unusable.empty() ? "" : unusable[0].reason;
  }
  LabelFolder folder;
};

TEST_F(Labelme, Areas) {
  const LabelledSplit split = of_shapes(shape("cat", "polygon", "[[1.5, 2], [11, 2.25], [11, 9.75]]") + "," +
                                        shape("dog", "rectangle", "[[20, 25], [10.5, 5]]") + "," +
                                        shape("ball", "circle", "[[20, 15], [23, 19]]"));
  EXPECT_EQ(names_of(split), (Texts{"a.png 40x30"}));
  EXPECT_EQ(objects_of(split).at(0), "cat 1.5 2 9.5 7.75");
  EXPECT_EQ(objects_of(split).at(1), "dog 10.5 5 9.5 20");
  const coco::Annotation& ball = split.annotations.annotations.at(2);
  EXPECT_NEAR(ball.box.x, 15, .2);
  EXPECT_NEAR(ball.box.width, 10, .4);
  EXPECT_NEAR(ball.area, 25 * 3.14159, 5);
  EXPECT_EQ(split.annotations.categories[ball.category].name, "ball");
  EXPECT_EQ(split.annotations.findings.summary(), "");
}

TEST_F(Labelme, FilesWithAnExtensionInUpperCase) {
  folder.place("a.JSON", file(""));
  EXPECT_EQ(names_of(read()[0]), (Texts{"a.png 40x30"}));
}

TEST_F(Labelme, OrientedRectanglesArePolygons) {
  const LabelledSplit split = of_shapes(shape("cat", "oriented_rectangle", "[[10, 5], [20, 10], [15, 20], [5, 15]]"));
  EXPECT_EQ(objects_of(split), (Texts{"cat 5 5 15 15"}));
  EXPECT_EQ(std::get<coco::Polygons>(split.annotations.annotations[0].segmentation),
            (coco::Polygons{{10, 5, 20, 10, 15, 20, 5, 15}}));
}

TEST_F(Labelme, GroupsAreOneObject) {
  const LabelledSplit split = of_shapes(shape("cat", "polygon", "[[1, 1], [5, 1], [5, 5]]", "1") + "," +
                                        shape("dog", "polygon", "[[1, 1], [5, 1], [5, 5]]", "1") + "," +
                                        shape("cat", "polygon", "[[20, 10], [25, 10], [25, 15]]", "1") + "," +
                                        shape("cat", "polygon", "[[1, 1], [5, 1], [5, 5]]", "2"));
  EXPECT_EQ(objects_of(split), (Texts{"cat 1 1 24 14", "dog 1 1 4 4", "cat 1 1 4 4"}));
  EXPECT_EQ(std::get<coco::Polygons>(split.annotations.annotations[0].segmentation).size(), 2u);
}

TEST_F(Labelme, Masks) {
  const std::vector<uint8_t> pixels = {255, 0, 255, 0, 255, 255};
  const std::string png = base64(encode_grey_png(pixels, 3, 2));
  const std::string mask = shape("cat", "mask", "[[10, 5], [12, 6]]", "null", ", \"mask\": \"" + png + "\"");
  const LabelledSplit split = of_shapes(mask);
  EXPECT_EQ(objects_of(split), (Texts{"cat 10 5 3 2"}));
  std::vector<uint8_t> expected(40 * 30);
  for (const int at : {5 * 40 + 10, 5 * 40 + 12, 6 * 40 + 11, 6 * 40 + 12}) expected[static_cast<size_t>(at)] = 1;
  EXPECT_EQ(coco::decode(std::get<coco::Rle>(split.annotations.annotations[0].segmentation)), expected);
  EXPECT_EQ(of_shapes(shape("cat", "mask", "[[38, 5], [40, 6]]", "null", ", \"mask\": \"" + png + "\""))
                .annotations.findings.count("shapes that are not in labelme's form"),
            1u);
  const LabelledSplit joined =
      of_shapes(shape("cat", "mask", "[[10, 5], [12, 6]]", "7", ", \"mask\": \"" + png + "\"") + "," +
                shape("cat", "rectangle", "[[20, 20], [25, 25]]", "7"));
  EXPECT_EQ(objects_of(joined), (Texts{"cat 10 5 15 20"}));
  EXPECT_EQ(joined.annotations.annotations[0].area, 4 + 25);
}

TEST_F(Labelme, UnusableShapesAreLeftOut) {
  const LabelledSplit split = of_shapes(
      shape("cat", "point", "[[1, 1]]", "3") + "," + shape("cat", "linestrip", "[[1, 1], [2, 2]]") + "," +
      shape("cat", "rectangle", "[[1, 1]]") + "," + shape("cat", "polygon", "[[1, 1], [2]]") + "," +
      shape("cat", "polygon", "[[1, 1], [2, 2]]") + "," + shape("cat", "rectangle", "[[5, 5], [5, 9]]") + "," +
      shape("cat", "rectangle", "[[50, 50], [60, 60]]") + "," + shape("cat", "polygon", "[[0, 0], [1e7, 0], [0, 9]]") +
      R"(, {"points": []}, 5, )" + shape("dog", "rectangle", "[[1, 1], [3, 3]]"));
  EXPECT_EQ(objects_of(split), (Texts{"dog 1 1 2 2"}));
  EXPECT_EQ(split.annotations.findings.summary(),
            "shapes that are no areas, such as points and lines: 2 left out (first: a.json: shape 1: point); "
            "shapes that are not in labelme's form: 2 left out (first: a.json: shape 3: 1 points, expected 2); "
            "shapes without a label: 2 left out (first: a.json: shape 9); "
            "polygons of fewer than 3 corners or an odd count of numbers: 1 left out (first: a.json: shape 5); "
            "objects of which no polygon remains: 2 left out (first: a.json: shape 5); "
            "boxes without width or height: 1 left out (first: a.json: shape 6); "
            "boxes outside of their image: 1 left out (first: a.json: shape 7); "
            "polygons with coordinates that are not finite or beyond 1e6: 1 left out (first: a.json: shape 8)");
}

// A circle takes a hundred times the memory of its text.
TEST_F(Labelme, PolygonsOfAFileAreLimited) {
  std::string shapes;
  for (int i = 0; i < 910; ++i) shapes += shape("a", "circle", "[[10, 10], [1000009, 10]]") + ",";
  shapes.pop_back();
  const std::string summary = of_shapes(shapes).annotations.findings.summary();
  EXPECT_NE(
      summary.find("shapes that are not in labelme's form: 10 left out (first: a.json: shape 901: polygons of more "
                   "than 4000000 numbers in the file)"),
      std::string::npos)
      << summary;
}

TEST_F(Labelme, ImagesInOtherFoldersAndEmbeddedOnes) {
  folder.place_image("images/b.png", 40, 30);
  folder.place("labels/b.json", file("", "..\\\\images\\\\b.png"));
  folder.place("train/c.json",
               file("", "gone.png", "\"" + base64(encode_png(noise(12, 10, 3).view())) + "\"", "\"x\": 1"));
  const LabelledSplit split = read().at(0);
  EXPECT_EQ(names_of(split), (Texts{"images/b.png 40x30", "train/c 12x10"}));
  EXPECT_EQ(split.embedded, (Texts{"", "train/c.json"}));
  const auto source = open_labels(folder.path(), split);
  const auto reader = source->reader();
  const std::vector<std::byte> expected = encode_png(noise(12, 10, 3).view());
  const DetectionSample sample = reader->read(1, {});
  EXPECT_TRUE(std::ranges::equal(sample.encoded, expected));
  EXPECT_EQ(split.annotations.findings.summary(), "images without width and height: 1 measured (first: train/c.json)");
}

TEST_F(Labelme, SplitsAreFolders) {
  folder.place("train/a.json", file("", "../a.png"));
  folder.place("valid/a.json", file("", "../a.png"));
  folder.place("test/deep/a.json", file("", "../../a.png"));
  const auto splits = read();
  ASSERT_EQ(splits.size(), 3u);
  EXPECT_EQ(splits[1].name, "val");
  EXPECT_EQ(names_of(splits[2]), (Texts{"a.png 40x30"}));
}

TEST_F(Labelme, UnusableFilesAreNamed) {
  expect_error([&] { read(); }, Fault::data, "no JSON files of labelme in it");
  EXPECT_EQ(problem("{"), "invalid JSON or UTF-8 at byte 2");
  EXPECT_EQ(problem(R"({"images": []})"), "no list shapes, expected a file of labelme");
  EXPECT_EQ(problem(file("", "../../etc/passwd")), "no image file '../../etc/passwd', and no imageData");
  EXPECT_EQ(problem(file("", "gone.png", "\"?\"", "\"x\": 1")), "no base64: a character of code 63 at 0");
}

TEST(Base64, Decodes) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");  // RFC 4648
  EXPECT_EQ(decode_base64("Zm8"), "fo");
  EXPECT_EQ(decode_base64("data:image/png;base64,Zm9v\nYmFy"), "foobar");
  EXPECT_EQ(decode_base64("//79"), "\xff\xfe\xfd");
  expect_error([] { decode_base64("Zm9\x80"); }, Fault::data, "a character of code 128 at 3");
}

}  // namespace
}  // namespace dtrain::data::annotations
