// RLE masks against pycocotools, whose results are in polygons.json (see make_polygons.py), and against pixel-wise
// references.
#include "dtrain/data/coco/rle.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

using Json = nlohmann::json;

Json references() { return Json::parse(read_file(source_dir() / "tests/data/coco/polygons.json")); }

Rle reference_mask(const Json& polygon) {
  return parse(polygon["counts"].get<std::string>(), polygon["size"][0], polygon["size"][1]);
}

std::vector<uint8_t> random_pixels(int64_t height, int64_t width, double density, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution set(density);
  std::vector<uint8_t> pixels(static_cast<size_t>(height * width));
  for (uint8_t& pixel : pixels) pixel = set(random);
  return pixels;
}

TEST(Rle, PolygonsMatchPycocotools) {
  const Json all = references();
  int set = 0;
  for (const Json& polygon : all["polygons"]) {
    const Rle rle = from_polygon(polygon["xy"].get<std::vector<double>>(), polygon["size"][0], polygon["size"][1]);
    EXPECT_EQ(Json(to_text(rle)), polygon["counts"]) << polygon;
    EXPECT_EQ(rle, reference_mask(polygon)) << polygon;
    EXPECT_EQ(area(rle), polygon["area"]) << polygon;
    const BoundingBox box = bounds(rle);
    EXPECT_EQ(Json({box.x, box.y, box.width, box.height}), polygon["bbox"]) << polygon;
    set += area(rle) > 0;
  }
  EXPECT_GT(set, 40);
}

TEST(Rle, MergeAndIouMatchPycocotools) {
  const Json all = references();
  int overlapping = 0;
  for (const Json& pair : all["pairs"]) {
    const Rle masks[] = {reference_mask(all["polygons"][pair["a"].get<size_t>()]),
                         reference_mask(all["polygons"][pair["b"].get<size_t>()])};
    EXPECT_EQ(Json(to_text(merge(masks))), pair["union"]) << pair;
    EXPECT_EQ(Json(to_text(merge(masks, true))), pair["intersection"]) << pair;
    const BoundingBox boxes[] = {bounds(masks[0]), bounds(masks[1])};
    const std::span<const Rle> a(masks, 1), b(masks + 1, 1);
    const std::span<const BoundingBox> box_a(boxes, 1), box_b(boxes + 1, 1);
    const std::vector<uint8_t> no{0}, yes{1};
    EXPECT_EQ(iou(a, b, no).at(0), pair["iou"]) << pair;
    EXPECT_EQ(iou(a, b, yes).at(0), pair["crowd_iou"]) << pair;
    EXPECT_EQ(iou(box_a, box_b, no).at(0), pair["box_iou"]) << pair;
    EXPECT_EQ(iou(box_a, box_b, yes).at(0), pair["crowd_box_iou"]) << pair;
    overlapping += pair["iou"] > 0;
  }
  EXPECT_GT(overlapping, 20);
}

TEST(Rle, RoundTripOfAllForms) {
  uint64_t seed = 0;
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 40}, {40, 1}, {7, 11}, {64, 48}})
    for (const double density : {0.0, 0.01, 0.5, 0.99, 1.0}) {
      const std::vector<uint8_t> pixels = random_pixels(height, width, density, ++seed);
      const Rle rle = encode(pixels, height, width);
      EXPECT_EQ(decode(rle), pixels);
      EXPECT_EQ(parse(to_text(rle), height, width), rle);
      EXPECT_EQ(area(rle), static_cast<uint64_t>(std::count(pixels.begin(), pixels.end(), 1)));
      BoundingBox box{double(width), double(height), 0, 0};
      double right = 0, bottom = 0;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          if (pixels[static_cast<size_t>(y * width + x)]) {
            box.x = std::min<double>(box.x, x), box.y = std::min<double>(box.y, y);
            right = std::max<double>(right, x + 1), bottom = std::max<double>(bottom, y + 1);
          }
      box.width = right - box.x, box.height = bottom - box.y;
      EXPECT_EQ(bounds(rle), area(rle) == 0 ? BoundingBox{} : box) << height << " x " << width << " at " << density;
    }
}

TEST(Rle, MergeMatchesPixelwiseReference) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::vector<uint8_t>> pixels;
    std::vector<Rle> masks;
    for (uint64_t i = 0; i < 1 + seed % 4; ++i) {
      pixels.push_back(random_pixels(9, 13, 0.6, 10 * seed + i));
      masks.push_back(encode(pixels.back(), 9, 13));
    }
    std::vector<uint8_t> any(9 * 13, 0), all(9 * 13, 1);
    for (const std::vector<uint8_t>& mask : pixels)
      for (size_t i = 0; i < mask.size(); ++i) {
        any[i] |= mask[i];
        all[i] &= mask[i];
      }
    EXPECT_EQ(decode(merge(masks)), any);
    EXPECT_EQ(decode(merge(masks, true)), all);
  }
}

// Other programs write empty runs inside of or at the end of masks.
TEST(Rle, AcceptsEmptyRuns) {
  const Rle odd{2, 4, {0, 0, 3, 0, 1, 2, 0, 1, 1, 0}}, plain{2, 4, {4, 3, 1}};
  EXPECT_EQ(decode(odd), decode(plain));
  EXPECT_EQ(bounds(odd), bounds(plain));
  EXPECT_EQ(area(odd), 3u);
  const Rle both[] = {odd, plain}, twice[] = {odd, odd};
  for (const bool intersect : {false, true}) {
    EXPECT_EQ(merge(both, intersect), plain);
    EXPECT_EQ(merge(twice, intersect), plain);
  }
  EXPECT_EQ(iou(std::span(both).first(1), std::span(both).last(1), std::vector<uint8_t>{0}).at(0), 1);
  EXPECT_EQ(parse(to_text(odd), 2, 4), odd);
}

TEST(Rle, RejectsInvalidText) {
  const auto refused = [](const std::string& text, const std::string& part) {
    expect_error([&] { parse(text, 4, 5); }, Fault::data, part);
  };
  refused("", "RLE of 0 pixels for a mask of 4 x 5");
  refused("4", "RLE of 4 pixels");
  refused("d0!", "a character of code 33 at 2");
  refused("p", "a character of code 112");
  refused(std::string("\0", 1), "a character of code 0");
  refused("\xff", "a character of code 255");
  refused("d", "ends within a number");
  refused("PPPPPPPPP", "of more than seven characters");
  refused("oooooo?", "a run of");
  refused("O", "a run of -1 pixels");
  refused("e0", "a run of 21 pixels");
  EXPECT_EQ(parse("d0", 4, 5).counts, std::vector<uint32_t>{20});
}

TEST(Rle, RejectsInvalidSizes) {
  for (const auto& [height, width] :
       {std::pair<int64_t, int64_t>{0, 5}, {5, -1}, {65501, 1}, {50000, 50000}, {INT64_MAX, INT64_MAX}}) {
    expect_error([&, h = height, w = width] { parse("0", h, w); }, Fault::data, "a size of");
    expect_error([&, h = height, w = width] { encode({}, h, w); }, Fault::data, "a size of");
    expect_error([&, h = height, w = width] { decode({h, w, {0}}); }, Fault::data, "a size of");
    expect_error([&, h = height, w = width] { from_polygon(std::vector<double>(6), h, w); }, Fault::data, "a size of");
  }
  const Rle good{2, 2, {4}}, bad{2, 2, {4, UINT32_MAX}}, empty{2, 2, {}}, other{1, 4, {4}};
  for (const Rle& rle : {bad, empty}) {
    expect_error([&] { decode(rle); }, Fault::data, "for a mask of 2 x 2");
    expect_error([&] { bounds(rle); }, Fault::data, "for a mask of 2 x 2");
    const Rle masks[] = {good, rle};
    expect_error([&] { merge(masks); }, Fault::data, "for a mask of 2 x 2");
    expect_error([&] { iou(masks, masks, std::vector<uint8_t>(2)); }, Fault::data, "for a mask of 2 x 2");
  }
  const Rle masks[] = {good, other};
  expect_error([&] { merge(masks); }, Fault::data, "masks of different sizes");
  expect_error([&] { iou(masks, masks, std::vector<uint8_t>(2)); }, Fault::data, "masks of different sizes");
  expect_error([] { merge({}); }, Fault::config, "no masks");
  expect_error([&] { iou(std::span(masks).first(1), std::span(masks).first(1), {}); }, Fault::config,
               "0 crowd flags for 1 truths");
  expect_error([] { encode(std::vector<uint8_t>(3), 2, 2); }, Fault::config, "3 pixels for a mask of 2 x 2");
}

TEST(Polygon, RejectsOutOfRange) {
  const auto refused = [](const std::vector<double>& xy, const std::string& part) {
    expect_error([&] { from_polygon(xy, 600, 800); }, Fault::data, part);
  };
  refused({}, "a polygon of 0 numbers");
  refused({1, 2, 3, 4}, "a polygon of 4 numbers");
  refused({1, 2, 3, 4, 5, 6, 7}, "a polygon of 7 numbers");
  for (const double absurd : {1e7, -1e300, std::numeric_limits<double>::infinity(), std::nan("")}) {
    refused({0, 0, absurd, 1, 5, 5}, "a polygon has a corner at");
    refused({0, 0, 1, absurd, 5, 5}, "a polygon has a corner at");
  }
  std::vector<double> zigzag;
  for (int i = 0; i < 20000; ++i) zigzag.insert(zigzag.end(), {i % 2 * 900.0, i % 500 * 1.0});
  refused(zigzag, "crosses columns 16000000 times");
}

TEST(Polygon, AcceptsLimits) {
  const double far = kMaxCoordinate;
  EXPECT_EQ(area(from_polygon(std::vector<double>{-far, -far, far, -far, far, far, -far, far}, 600, 800)), 480000u);
}

TEST(Polygon, PartsAreMerged) {
  const std::vector<std::vector<double>> parts = {{0, 0, 4, 0, 4, 4, 0, 4}, {2, 2, 6, 2, 6, 6, 2, 6}};
  EXPECT_EQ(area(from_polygons(parts, 10, 10)), 28u);
  expect_error([] { from_polygons({}, 10, 10); }, Fault::config, "no masks");
}

}  // namespace
}  // namespace dtrain::data::coco
