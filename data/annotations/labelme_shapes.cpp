#include "data/annotations/labelme_shapes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "data/annotations/base64.h"
#include "data/coco/object_checks.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"

namespace dtrain::data::annotations {
namespace {

using coco::kLeftOut;
using nlohmann::json;

// Bounds the time that the masks of a file take.
constexpr int64_t kMaxMaskPixelsOfFile = 2'000'000'000;
// A circle of four numbers becomes a polygon of up to 4442.
constexpr size_t kMaxPolygonNumbersOfFile = 4'000'000;

// Parts of an object.
struct Instance {
  LabelledObject object{};
  coco::Polygons polygons{};
  std::vector<coco::Rle> masks{};
};

// x0, y0, x1, y1 ... of a list of pairs of numbers.
std::vector<double> points_of(const json& shape) {
  std::vector<double> xy;
  const auto points = shape.find("points");
  if (points == shape.end() || !points->is_array()) throw Error(Fault::data, "no list of points");
  for (const json& point : *points) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
      throw Error(Fault::data, "a point that is not x and y");
    xy.push_back(point[0].get<double>());
    xy.push_back(point[1].get<double>());
  }
  return xy;
}

std::vector<double> two_points(const json& shape) {
  std::vector<double> xy = points_of(shape);
  if (xy.size() != 4) throw Error(Fault::data, concat(xy.size() / 2, " points, expected 2"));
  return xy;
}

std::vector<double> rectangle(const std::vector<double>& xy) {
  const auto [left, right] = std::minmax(xy[0], xy[2]);
  const auto [top, bottom] = std::minmax(xy[1], xy[3]);
  return {left, top, right, top, right, bottom, left, bottom};
}

// Regular polygon around the first point through the second one, which is within a pixel of the circle.
std::vector<double> circle(const std::vector<double>& xy) {
  const double radius = std::hypot(xy[2] - xy[0], xy[3] - xy[1]);
  if (!(radius <= coco::kMaxCoordinate)) throw Error(Fault::data, concat("a circle with a radius of ", radius));
  const double sides = radius > 1 ? std::numbers::pi / std::acos(1 - 1 / radius) : 0;
  const int corners = std::max(static_cast<int>(sides), 12);
  std::vector<double> polygon;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * i / corners;
    polygon.push_back(xy[0] + radius * std::sin(angle));
    polygon.push_back(xy[1] + radius * std::cos(angle));
  }
  return polygon;
}

// Mask of an image of this size whose set pixels are those of `pixels`, at this place.
coco::Rle placed(const ImageView& pixels, int64_t left, int64_t top, const ImageSize& size) {
  coco::Rle mask{size.height, size.width, {}};
  uint32_t end = 0;  // of the last run
  for (int x = 0; x < pixels.width; ++x)
    for (int y = 0; y < pixels.height; ++y) {
      if (pixels.row(y)[3 * x] == 0) continue;
      const auto at = static_cast<uint32_t>((left + x) * size.height + top + y);
      if (mask.counts.empty() || at != end) {
        mask.counts.push_back(at - end);
        mask.counts.push_back(0);
      }
      ++mask.counts.back();
      end = at + 1;
    }
  if (const auto pixels_of_image = static_cast<uint32_t>(size.height * size.width); end < pixels_of_image)
    mask.counts.push_back(pixels_of_image - end);
  return mask;
}

// Grey or bilevel PNG whose upper left corner is the first point.
coco::Rle mask_of_shape(const json& shape, const ImageSize& size, int64_t& mask_pixels) {
  const std::vector<double> xy = two_points(shape);
  const auto mask = shape.find("mask");
  if (mask == shape.end() || !mask->is_string()) throw Error(Fault::data, "no text mask, expected a PNG in base64");
  const std::string bytes = decode_base64(mask->get_ref<const std::string&>());
  ImageDecoder decoder;
  decoder.open(std::as_bytes(std::span(bytes)));
  const ImageView pixels = decoder.decode();
  mask_pixels += int64_t{pixels.width} * pixels.height;
  if (mask_pixels > kMaxMaskPixelsOfFile)
    throw Error(Fault::data, concat("masks of more than ", kMaxMaskPixelsOfFile, " pixels in the file"));
  const auto whole = [](double number) { return std::abs(number) <= coco::kMaxCoordinate ? std::llround(number) : -1; };
  const int64_t left = whole(xy[0]), top = whole(xy[1]);
  if (left < 0 || top < 0 || left + pixels.width > size.width || top + pixels.height > size.height)
    throw Error(Fault::data, concat("a mask of ", pixels.width, "x", pixels.height, " pixels at ", xy[0], ", ", xy[1],
                                    " in an image of ", size.width, "x", size.height));
  return placed(pixels, left, top, size);
}

std::string type_of(const json& shape, size_t points) {
  const auto type = shape.find("shape_type");
  if (type != shape.end() && type->is_string()) return type->get<std::string>();
  return points < 3 ? "line" : "polygon";  // files of labelme before 3.2
}

bool add_part(const json& shape, const ImageSize& size, int64_t& mask_pixels, Instance& instance, std::string& other) {
  const std::string type = type_of(shape, shape.contains("points") ? shape["points"].size() : 0);
  if (type == "polygon" || type == "oriented_rectangle")
    instance.polygons.push_back(points_of(shape));
  else if (type == "rectangle")
    instance.polygons.push_back(rectangle(two_points(shape)));
  else if (type == "circle")
    instance.polygons.push_back(circle(two_points(shape)));
  else if (type == "mask")
    instance.masks.push_back(mask_of_shape(shape, size, mask_pixels));
  else
    other = type;
  return other.empty();
}

class Shapes {
 public:
  Shapes(const std::string& title, LabelledImage& image) : title_(title), image_(image) {}

  void add(const json& shape, size_t number) {
    const std::string title = concat(title_, ": shape ", number);
    if (!shape.is_object() || !shape.contains("label") || !shape["label"].is_string())
      return image_.findings.add("shapes without a label", kLeftOut, title);
    const std::string label = shape["label"].get<std::string>();
    Instance part{.object = {.class_name = label, .title = title}};
    std::string other;
    try {
      if (!add_part(shape, image_.size, mask_pixels_, part, other))
        return image_.findings.add("shapes that are no areas, such as points and lines", kLeftOut,
                                   concat(title, ": ", other.substr(0, 40)), /*is_fault=*/false);
      for (const std::vector<double>& polygon : part.polygons) polygon_numbers_ += polygon.size();
      if (polygon_numbers_ > kMaxPolygonNumbersOfFile)
        throw Error(Fault::data, concat("polygons of more than ", kMaxPolygonNumbersOfFile, " numbers in the file"));
    } catch (const Error& error) {
      return image_.findings.add("shapes that are not in labelme's form", kLeftOut, concat(title, ": ", error.what()));
    }
    join(std::move(part), shape);
  }

  void finish() {
    for (Instance& instance : instances_) try {
        finish(instance);
      } catch (const Error& error) {
        if (error.fault() != Fault::data) throw;
        image_.findings.add("objects whose mask gives no box or area", kLeftOut,
                            concat(instance.object.title, ": ", error.what()));
      }
  }

 private:
  // Parts of one label and group_id are one object.
  void join(Instance part, const json& shape) {
    const auto group = shape.find("group_id");
    if (group == shape.end() || group->is_null()) return instances_.push_back(std::move(part));
    const auto [at, is_new] = groups_.emplace(std::pair(part.object.class_name, group->dump()), instances_.size());
    if (is_new) return instances_.push_back(std::move(part));
    Instance& whole = instances_[at->second];
    std::ranges::move(part.polygons, std::back_inserter(whole.polygons));
    std::ranges::move(part.masks, std::back_inserter(whole.masks));
  }

  void finish(Instance& instance) {
    LabelledObject& object = instance.object;
    if (instance.masks.empty()) {
      object.segmentation = std::move(instance.polygons);
      return image_.add(std::move(object));
    }
    if (!instance.polygons.empty() && coco::keep_polygons(instance.polygons, object.title, image_.findings))
      instance.masks.push_back(coco::from_polygons(instance.polygons, image_.size.height, image_.size.width));
    coco::Rle mask = coco::merge(instance.masks);
    object.box = coco::bounds(mask);
    object.segmentation = std::move(mask);
    image_.add(std::move(object));
  }

  const std::string& title_;
  LabelledImage& image_;
  int64_t mask_pixels_ = 0;
  size_t polygon_numbers_ = 0;
  std::vector<Instance> instances_;
  std::map<std::pair<std::string, std::string>, size_t> groups_;
};

}  // namespace

void add_shapes(const json& shapes, const std::string& title, LabelledImage& image) {
  Shapes all(title, image);
  size_t number = 0;
  for (const json& shape : shapes) all.add(shape, ++number);
  all.finish();
}

}  // namespace dtrain::data::annotations
