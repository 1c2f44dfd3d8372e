// Drawing in dtrain-mask-rcnn: pixels of boxes, masks and labels, panels, and the gallery page.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/mask_rcnn/draw_objects.h"
#include "apps/mask_rcnn/font.h"
#include "apps/mask_rcnn/gallery.h"
#include "apps/mask_rcnn/panels.h"
#include "apps/mask_rcnn/text.h"
#include "dtrain/core/error.h"
#include "dtrain/data/png.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr Color kGrey{90, 90, 90};

// A rectangular mask in a picture of width x height pixels.
data::coco::Rle mask_of_rectangle(const Rectangle& area, int width, int height) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) pixels.push_back(!intersection({x, y, 1, 1}, area).empty());
  return data::coco::encode(pixels, height, width);
}

std::vector<std::string> rows_of(const Canvas& canvas, Color ink) {
  std::vector<std::string> rows;
  for (int y = 0; y < canvas.height(); ++y) {
    std::string& row = rows.emplace_back();
    for (int x = 0; x < canvas.width(); ++x) row += canvas.at(x, y) == ink ? '#' : '.';
  }
  return rows;
}

// Bounding box of all pixels other than `background`.
Rectangle touched(const Canvas& canvas, Color background) {
  int left = canvas.width(), top = canvas.height(), right = 0, bottom = 0;
  for (int y = 0; y < canvas.height(); ++y)
    for (int x = 0; x < canvas.width(); ++x)
      if (canvas.at(x, y) != background) {
        left = std::min(left, x), right = std::max(right, x + 1);
        top = std::min(top, y), bottom = std::max(bottom, y + 1);
      }
  return {left, top, right - left, bottom - top};
}

TEST(Colors, OfClassesAreDistinctAndLegible) {
  std::set<std::tuple<int, int, int>> seen;
  for (int64_t i = 0; i < 91; ++i) {
    const Color color = color_of_class(i);
    EXPECT_EQ(color, color_of_class(i));
    EXPECT_TRUE(seen.insert({color.red, color.green, color.blue}).second) << "class " << i;
    const double a = luminance(color), b = luminance(text_color(color));
    EXPECT_GE((std::max(a, b) + 0.05) / (std::min(a, b) + 0.05), 4.5) << "class " << i;
  }
  for (int64_t i = 1; i <= 12; ++i)
    for (int64_t j = 1; j < i; ++j) {
      const Color a = color_of_class(i), b = color_of_class(j);
      const int difference = std::abs(a.red - b.red) + std::abs(a.green - b.green) + std::abs(a.blue - b.blue);
      EXPECT_GE(difference, 60) << "classes " << j << " and " << i;
    }
  color_of_class(std::numeric_limits<int64_t>::min());  // of no model, but not an error
  EXPECT_DOUBLE_EQ(luminance(kWhite), 1);
  EXPECT_EQ(luminance(kBlack), 0);
  EXPECT_EQ(text_color(kWhite), kBlack);
  EXPECT_EQ(text_color({0, 0, 160}), kWhite);
}

TEST(Canvas, FramesAndFillsTheirRectanglesAndNothingElse) {
  Canvas canvas(9, 7, kBlack);
  canvas.frame({1, 1, 7, 5}, 1, kWhite);
  canvas.fill({3, 3, 2, 1}, kWhite);
  EXPECT_EQ(rows_of(canvas, kWhite), (std::vector<std::string>{".........", ".#######.", ".#.....#.", ".#.##..#.",
                                                               ".#.....#.", ".#######.", "........."}));
  Canvas edges(4, 3, kBlack);
  edges.frame({-3, -3, 6, 6}, 2, kWhite);
  edges.fill({100, 100, 5, 5}, kWhite);
  edges.blend(-1, 0, kWhite, 1);
  edges.blend(0, 3, kWhite, 1);
  EXPECT_EQ(rows_of(edges, kWhite), (std::vector<std::string>{".##.", "###.", "###."}));
  Canvas thin(5, 3, kBlack);
  thin.frame({1, 0, 3, 3}, 2, kWhite, 0.5);  // no pixel is blended twice
  EXPECT_EQ(rows_of(thin, {128, 128, 128}), (std::vector<std::string>{".###.", ".###.", ".###."}));
  expect_error([] { Canvas(0, 5, kBlack); }, Fault::config, "0x5");
}

TEST(Canvas, LinesAndTextGrowWithThePicture) {
  const Canvas small(200, 150, kBlack), usual(640, 480, kBlack), large(2000, 1500, kBlack);
  EXPECT_EQ(small.line_width(), 1);
  EXPECT_EQ(usual.line_width(), 2);
  EXPECT_EQ(large.line_width(), 5);
  EXPECT_EQ(small.text_scale(), 1);
  EXPECT_EQ(usual.text_scale(), 1.5);
  EXPECT_EQ(large.text_scale(), 4);
}

TEST(Text, IsMadeOfItsCellsAtScaleOne) {
  Canvas canvas(13, 10, kBlack);
  draw_text(canvas, 1, 1, "Tg", 1, kWhite);
  const std::vector<std::string> rows = rows_of(canvas, kWhite);
  EXPECT_EQ(rows[1], ".#####.......");
  EXPECT_EQ(rows[7], "...#....###..");
  EXPECT_EQ(rows[9], "........##...");
  EXPECT_EQ(touched(canvas, kBlack), (Rectangle{1, 1, 10, 9}));
  EXPECT_EQ(text_width("Tg", 1), 10);
}

TEST(Text, HasAShapeForEveryPrintableCharacter) {
  std::set<std::string> shapes;
  for (int code = ' '; code <= '~'; ++code) {
    const Glyph glyph(static_cast<char>(code));
    std::string shape;
    for (int row = 0; row < Glyph::kRows; ++row)
      for (int column = 0; column < 5; ++column) shape += glyph.at(column, row) ? '#' : '.';
    EXPECT_TRUE(shapes.insert(shape).second) << "'" << static_cast<char>(code) << "' looks like another character";
    EXPECT_EQ(shape.find('#') == std::string::npos, code == ' ');
  }
  expect_error([] { Glyph('\n'); }, Fault::config, "10");
}

TEST(Text, ShowsNonAsciiCharactersAsQuestionMarks) {
  EXPECT_EQ(text_width("\xc3\xa4", 2), text_width("?", 2));
  EXPECT_EQ(text_width("a\nb\xff", 1), text_width("a?b?", 1));
  Canvas foreign(20, 12, kBlack), question(20, 12, kBlack);
  draw_text(foreign, 2, 2, "x\xe2\x82\xac", 1, kWhite);
  draw_text(question, 2, 2, "x?", 1, kWhite);
  EXPECT_EQ(rows_of(foreign, kWhite), rows_of(question, kWhite));
}

TEST(Text, StaysWithinItsMeasures) {
  for (const double scale : {1.0, 1.5, 2.0, 3.5, 6.0}) {
    const std::string text = "MW@gjpqy|_[0.98]";
    Canvas canvas(text_width(text, scale) + 40, text_height(scale) + 40, kBlack);
    draw_text(canvas, 20, 20, text, scale, kWhite);
    const Rectangle inside = touched(canvas, kBlack);
    EXPECT_EQ(intersection(inside, {20, 20, text_width(text, scale), text_height(scale)}), inside) << scale;
    EXPECT_LE(text_width(shortened(text, scale, 50), scale), 50);
  }
  EXPECT_EQ(shortened("person 0.98", 1, 1000), "person 0.98");
  EXPECT_EQ(shortened("person 0.98", 1, 40), "person..");
  EXPECT_EQ(shortened("person", 1, 3), "");
}

TEST(Objects, BoxesAreDrawnOnTheirEdges) {
  Canvas canvas(60, 50, kGrey);
  const Color color = color_of_class(3);
  draw_objects(canvas, std::vector<DrawnObject>{{.box = {10, 20, 30, 15}, .object_class = 3}});
  for (const auto& [x, y] : {std::pair{10, 20}, {39, 20}, {10, 34}, {39, 34}, {25, 20}, {10, 28}})
    EXPECT_EQ(canvas.at(x, y), color) << x << ", " << y;
  EXPECT_EQ(canvas.at(25, 28), kGrey);
  EXPECT_LT(luminance(canvas.at(9, 28)), luminance(kGrey));  // the shadow
  EXPECT_EQ(touched(canvas, kGrey), (Rectangle{9, 19, 32, 17}));
}

TEST(Objects, BoxesAreClippedAndInvalidOnesSkipped) {
  const double infinite = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Canvas canvas(60, 50, kGrey);
  draw_objects(canvas, std::vector<DrawnObject>{{.box = {-1e300, -5, 1e301, 1e12}, .object_class = 1}});
  for (const auto& [x, y] : {std::pair{0, 0}, {59, 0}, {0, 49}, {59, 49}})
    EXPECT_EQ(canvas.at(x, y), color_of_class(1)) << x << ", " << y;
  Canvas bare(60, 50, kGrey);
  for (const data::coco::BoundingBox& box : std::vector<data::coco::BoundingBox>{{nan, 1, 5, 5},
                                                                                 {1, 1, nan, 5},
                                                                                 {1, 1, infinite, 5},
                                                                                 {-infinite, 1, infinite, 5},
                                                                                 {5, 5, 0, 5},
                                                                                 {5, 5, -3, 5},
                                                                                 {60, 5, 9, 9},
                                                                                 {-20, 5, 20, 9},
                                                                                 {5, -20, 9, 20}})
    draw_objects(bare, std::vector<DrawnObject>{{.box = box, .object_class = 1, .label = "absurd"}});
  EXPECT_TRUE(touched(bare, kGrey).empty());
  draw_objects(bare, std::vector<DrawnObject>{{.box = {59.9, 49.9, 0.01, 0.01}, .object_class = 1}});
  EXPECT_EQ(bare.at(59, 49), color_of_class(1));
}

TEST(Objects, MasksAreTranslucentWithAnOutline) {
  Canvas canvas(60, 50, kGrey);
  const Color color = color_of_class(2);
  const data::coco::Rle mask = mask_of_rectangle({40, 10, 20, 9}, 60, 50);
  draw_objects(canvas, std::vector<DrawnObject>{{.mask = mask, .object_class = 2}});
  EXPECT_EQ(touched(canvas, kGrey), (Rectangle{40, 10, 20, 9}));
  for (const auto& [x, y] : {std::pair{40, 10}, {50, 10}, {40, 14}, {59, 18}}) EXPECT_EQ(canvas.at(x, y), color);
  const Color inside = canvas.at(50, 14);
  EXPECT_NE(inside, color);
  EXPECT_GT(inside.blue, kGrey.blue);
  EXPECT_EQ(canvas.at(59, 14), inside);  // the object extends beyond the picture
  Canvas other(61, 50, kGrey);
  expect_error([&] { draw_objects(other, std::vector<DrawnObject>{{.mask = mask}}); }, Fault::config, "60x50");
  draw_objects(canvas, std::vector<DrawnObject>{{.mask = mask_of_rectangle({}, 60, 50)}});  // without pixels
}

TEST(Objects, SmallOnesAreDrawnOverLargeOnes) {
  const DrawnObject small{
      .box = {20, 20, 10, 10}, .mask = mask_of_rectangle({23, 23, 4, 4}, 60, 50), .object_class = 1};
  const DrawnObject large{.box = {5, 5, 50, 40}, .mask = mask_of_rectangle({5, 5, 50, 40}, 60, 50), .object_class = 2};
  Canvas one(60, 50, kGrey), other(60, 50, kGrey);
  draw_objects(one, std::vector<DrawnObject>{small, large});
  draw_objects(other, std::vector<DrawnObject>{large, small});
  EXPECT_EQ(one.image().pixels, other.image().pixels);
  EXPECT_EQ(one.at(20, 25), color_of_class(1));
  EXPECT_EQ(one.at(23, 25), color_of_class(1));
}

TEST(Labels, StayInsideThePictureAndApart) {
  const Rectangle picture{0, 0, 200, 150};
  std::vector<LabelledBox> labels;
  for (const Rectangle& box : {Rectangle{0, 0, 50, 40},
                               {5, 2, 50, 40},
                               {180, 140, 20, 10},
                               {190, 0, 10, 150},
                               {90, 60, 80, 60},
                               {92, 61, 80, 60},
                               {94, 60, 70, 50}})
    labels.push_back({box, 66, 13});
  labels.push_back({});  // an object without a label
  const std::vector<Rectangle> places = place_labels(picture, labels);
  ASSERT_EQ(places.size(), labels.size());
  EXPECT_EQ(places[4], (Rectangle{90, 47, 66, 13}));  // above its box, at its left edge
  EXPECT_TRUE(places.back().empty());
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    EXPECT_EQ(places[i].width, 66);
    EXPECT_EQ(intersection(places[i], picture), places[i]) << i;
    for (size_t j = 0; j < i; ++j) EXPECT_TRUE(intersection(places[i], places[j]).empty()) << i << " covers " << j;
  }
  const std::vector<LabelledBox> crowd(50, {{90, 60, 20, 20}, 66, 13});
  const std::vector<Rectangle> room = place_labels(picture, crowd);
  EXPECT_FALSE(room.front().empty());
  EXPECT_TRUE(room.back().empty());
  std::vector<LabelledBox> everywhere;
  for (int i = 0; i < 30; ++i) everywhere.push_back({{i % 3 * 67, i / 3 * 15 + 13, 20, 2}, 66, 13});
  const std::vector<Rectangle> some = place_labels(picture, everywhere);
  EXPECT_EQ(std::ranges::count_if(some, [](const Rectangle& place) { return !place.empty(); }), 8);  // a quarter
}

TEST(Labels, AreLegibleOnTheirChips) {
  Canvas canvas(200, 150, kGrey);
  draw_objects(canvas, std::vector<DrawnObject>{{.box = {30, 60, 90, 50}, .object_class = 1, .label = "person 0.98"}});
  const Color color = color_of_class(1);
  int chip = 0, ink = 0;
  for (int y = 40; y < 59; ++y)
    for (int x = 30; x < 120; ++x) {
      chip += canvas.at(x, y) == color;
      ink += canvas.at(x, y) == text_color(color);
    }
  EXPECT_GT(chip, 300);
  EXPECT_GT(ink, 80);
  EXPECT_EQ(score_label("person", 0.9849), "person 0.98");
}

TEST(Labels, AreNoTroubleInTinyPictures) {
  for (const int side : {1, 2, 3, 7, 20}) {
    Canvas canvas(side, side, kGrey);
    draw_objects(canvas, std::vector<DrawnObject>{{.box = {0, 0, 9, 9},
                                                   .mask = mask_of_rectangle({0, 0, 1, 1}, side, side),
                                                   .object_class = 1,
                                                   .label = "a long label"}});
    EXPECT_NE(canvas.at(0, 0), kGrey);
  }
}

TEST(Objects, FollowTheGroundTruth) {
  const data::coco::Annotations truth = data::coco::parse_annotations(
      R"({"images": [{"id": 7, "file_name": "a.jpg", "width": 20, "height": 10}],
          "categories": [{"id": 3, "name": "cat"}, {"id": 5, "name": "dog"}],
          "annotations": [
            {"id": 1, "image_id": 7, "category_id": 5, "bbox": [1, 2, 3, 4]},
            {"id": 2, "image_id": 7, "category_id": 3, "bbox": [0, 0, 4, 4], "iscrowd": 1,
             "segmentation": {"size": [10, 20], "counts": [0, 4, 196]}}]})",
      "here");
  const std::vector<DrawnObject> objects = annotated_objects(truth, 0, 10, 20);
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0].label, "dog");
  EXPECT_EQ(objects[0].object_class, 2);
  EXPECT_EQ(objects[0].box, (data::coco::BoundingBox{1, 2, 3, 4}));
  EXPECT_FALSE(objects[0].mask);
  EXPECT_EQ(objects[1].label, "cat (crowd)");
  ASSERT_TRUE(objects[1].mask);
  EXPECT_EQ(data::coco::area(*objects[1].mask), 4u);
}

TEST(Panels, AreBesideEachOtherBelowTheirTitles) {
  const Canvas red(30, 20, {255, 0, 0}), green(50, 35, {0, 255, 0});
  const std::vector<Panel> panels = {{"Ground truth", red.image()}, {"Results", green.image()}};
  const Canvas both(side_by_side(panels).view());
  int reds = 0, greens = 0, bright = 0, last_red = 0, first_green = both.width();
  for (int y = 0; y < both.height(); ++y)
    for (int x = 0; x < both.width(); ++x) {
      const Color color = both.at(x, y);
      if (color == Color{255, 0, 0}) ++reds, last_red = std::max(last_red, x);
      if (color == Color{0, 255, 0}) ++greens, first_green = std::min(first_green, x);
      bright += color.red > 200 && color.green > 200;
    }
  EXPECT_EQ(reds, 30 * 20);
  EXPECT_EQ(greens, 50 * 35);
  EXPECT_LT(last_red, first_green);
  EXPECT_GT(bright, 60);
  expect_error([] { side_by_side({}); }, Fault::config, "no panels");
}

TEST(Pictures, AreReadBackFromTheirFiles) {
  const TempDirectory directory;
  Canvas canvas(40, 30, kGrey);
  draw_objects(canvas, std::vector<DrawnObject>{{.box = {3, 12, 30, 15}, .object_class = 4, .label = "cat"}});
  const std::string path = directory / "picture.png";
  write_png(path, canvas.image().view());
  const std::string bytes = read_file(path);
  data::ImageDecoder decoder;
  EXPECT_EQ(decoder.open(std::as_bytes(std::span(bytes))).format, data::ImageFormat::png);
  const Canvas back(decoder.decode());
  EXPECT_EQ(back.width(), 40);
  EXPECT_EQ(back.height(), 30);
  EXPECT_EQ(back.image().pixels, canvas.image().pixels);
  expect_error([&] { write_png(directory / "none/picture.png", canvas.image().view()); }, Fault::resource, "none");
}

Gallery hostile_gallery() {
  const std::string attack = "<script>alert(\"1\")</script>&'\n\x1b\xff\xc3\xa4";
  Gallery gallery{.title = attack, .notes = {attack}, .score_name = attack};
  gallery.worst = {{.source = relative_source("a b/\"><x>.png"),
                    .file_name = attack,
                    .score = 0.125,
                    .hits = 3,
                    .misses = 4,
                    .false_alarms = 5}};
  gallery.best = {{.source = "\"><script>", .width = 900, .height = 300, .file_name = "b.jpg", .score = 1}};
  gallery.classes = {{.name = attack, .objects = 12, .box_ap = 0.3456, .mask_ap = -1},
                     {.name = "zebra", .objects = 0, .box_ap = {}, .mask_ap = 0.5}};
  return gallery;
}

TEST(Gallery, EscapesTexts) {
  const std::string page = to_html(hostile_gallery());
  EXPECT_FALSE(contains(page, "<script"));
  EXPECT_FALSE(contains(page, "<x>"));
  EXPECT_EQ(page.find_first_of("\x1b\xff"), std::string::npos);
  EXPECT_TRUE(
      contains(page, "<h1>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;\\n\\x1b\\xff\xc3\xa4</h1>"));
  EXPECT_TRUE(contains(page, "src=\"./a%20b/%22%3E%3Cx%3E.png\""));
  EXPECT_TRUE(contains(page, "src=\"&quot;&gt;&lt;script&gt;\""));
}

TEST(Gallery, HasScoresCountsAndPrecision) {
  const std::string page = to_html(hostile_gallery());
  for (const char* part : {"0.125</span>", "<b>3</b> found", "<b>4</b> missed", "<b>5</b> false", "1.000</span>",
                           "width:34.6%", ">34.6<", "<td>&ndash;</td>", ">50.0<", "<td>12</td>", "prefers-color-scheme",
                           "width=\"900\" height=\"300\"", "class=\"grid broad\"", "Worst images", "Best images"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_FALSE(contains(page, "-100.0"));
  const std::string empty = to_html({.title = "Nothing"});
  EXPECT_FALSE(contains(empty, "images</h2>"));
  EXPECT_FALSE(contains(empty, "<table>"));
}

TEST(Gallery, IsSelfContained) {
  const std::string page = to_html(hostile_gallery());
  for (const char* part : {"http:", "https:", "@import", "<link", "url("}) EXPECT_FALSE(contains(page, part)) << part;
}

TEST(Gallery, SourcesAreUris) {
  const auto embedded = [](std::string_view bytes) { return embedded_source(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(embedded(""), "data:image/png;base64,");
  EXPECT_EQ(embedded("f"), "data:image/png;base64,Zg==");  // RFC 4648
  EXPECT_EQ(embedded("fo"), "data:image/png;base64,Zm8=");
  EXPECT_EQ(embedded("foo"), "data:image/png;base64,Zm9v");
  EXPECT_EQ(embedded("foobar"), "data:image/png;base64,Zm9vYmFy");
  EXPECT_EQ(embedded("\xff\xfe\xfd"), "data:image/png;base64,//79");
  EXPECT_EQ(relative_source("javascript:alert(1)"), "./javascript%3Aalert%281%29");
  EXPECT_EQ(relative_source("worst/000000000139.png"), "./worst/000000000139.png");
  EXPECT_EQ(relative_source("50%\xff#?.png"), "./50%25%FF%23%3F.png");
}

TEST(Gallery, IsWrittenAtomically) {
  const TempDirectory directory;
  const Gallery gallery = hostile_gallery();
  write_gallery(directory / ".", gallery);
  EXPECT_EQ(read_file(directory / "index.html"), to_html(gallery));
  const auto json = nlohmann::json::parse(read_file(directory / "gallery.json"));
  EXPECT_EQ(json.at("worst").at(0).at("missed"), 4);
  EXPECT_EQ(json.at("classes").at(0).at("box_ap"), 0.3456);
  EXPECT_TRUE(json.at("classes").at(1).at("box_ap").is_null());
}

}  // namespace
}  // namespace dtrain::mask_rcnn
