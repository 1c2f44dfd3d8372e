#include "data/annotations/labelled_image.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>

#include "data/coco/object_checks.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::data::annotations {
namespace {

using coco::kLeftOut;

// Whether a box that coco::check_box() accepts has pixels of the image.
bool check_place(const coco::BoundingBox& box, const ImageSize& size, const std::string& title,
                 coco::Findings& findings) {
  if (box.width == 0 || box.height == 0) {
    findings.add("boxes without width or height", kLeftOut, title);
    return false;
  }
  if (box.x < static_cast<double>(size.width) && box.y < static_cast<double>(size.height) && box.x + box.width > 0 &&
      box.y + box.height > 0)
    return true;
  findings.add("boxes outside of their image", kLeftOut, title);
  return false;
}

}  // namespace

void LabelledImage::add(LabelledObject object) {
  if (auto* polygons = std::get_if<coco::Polygons>(&object.segmentation)) {
    if (!coco::keep_polygons(*polygons, object.title, findings)) return;
    object.box = bounds(*polygons);
  }
  if (!coco::check_box(object.box, object.title, findings)) return;
  if (!check_place(object.box, size, object.title, findings)) return;
  if (object.area == 0) object.area = object.box.width * object.box.height;
  if (object.segmentation.index() != 0) try {
      const coco::Annotation annotation{.segmentation = object.segmentation};
      object.area = static_cast<double>(area(mask_of(annotation, size.height, size.width)));
    } catch (const Error& error) {
      return findings.add("objects whose mask gives no box or area", kLeftOut,
                          concat(object.title, ": ", error.what()));
    }
  objects.push_back(std::move(object));
}

coco::BoundingBox bounds(const coco::Polygons& polygons) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double left = kFar, top = kFar, right = -kFar, bottom = -kFar;
  for (const std::vector<double>& polygon : polygons)
    for (size_t i = 0; i + 1 < polygon.size(); i += 2) {
      left = std::min(left, polygon[i]);
      right = std::max(right, polygon[i]);
      top = std::min(top, polygon[i + 1]);
      bottom = std::max(bottom, polygon[i + 1]);
    }
  return {left, top, right - left, bottom - top};
}

double number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : std::nan("");
}

bool stays_inside(std::string_view path) {
  if (path.empty() || path.find('\0') != path.npos || path.size() > 4096) return false;
  const std::filesystem::path parts(path);
  return !parts.is_absolute() && std::ranges::find(parts, "..") == parts.end();
}

std::string normal_path(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal == ".") return "";
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

ImageSize measured_size(const std::string& path) {
  const std::string bytes = read_text(path, kMaxRecordBytes);
  ImageDecoder decoder;
  const ImageInfo info = decoder.open(std::as_bytes(std::span(bytes)), Orientation::apply);
  coco::check_mask_size(info.height, info.width);
  return {info.height, info.width};
}

}  // namespace dtrain::data::annotations
