#include "data/coco/object_checks.h"

#include <algorithm>
#include <cmath>

namespace dtrain::data::coco {
namespace {

constexpr double kMaxBoxNumber = 1e9;  // larger numbers are errors

}  // namespace

bool has_far_corner(const std::vector<double>& polygon) {
  return !std::ranges::all_of(polygon, [](double number) { return std::abs(number) <= kMaxCoordinate; });
}

bool check_box(const BoundingBox& box, const std::string& title, Findings& findings) {
  const auto is_bounded = [](double number) { return std::abs(number) <= kMaxBoxNumber; };
  if (!(is_bounded(box.x) && is_bounded(box.y) && is_bounded(box.width) && is_bounded(box.height))) {
    findings.add("boxes with numbers that are not finite or beyond 1e9", kLeftOut, title);
    return false;
  }
  if (box.width >= 0 && box.height >= 0) return true;
  findings.add("boxes of negative width or height", kLeftOut, title);
  return false;
}

bool keep_polygons(Polygons& polygons, const std::string& title, Findings& findings) {
  std::erase_if(polygons, [&](const std::vector<double>& polygon) {
    const bool is_short = polygon.size() < 6 || polygon.size() % 2 != 0, is_far = has_far_corner(polygon);
    if (is_short || is_far) findings.add(is_short ? kShortPolygon : kFarPolygon, kLeftOut, title);
    return is_short || is_far;
  });
  if (!polygons.empty()) return true;
  findings.add("objects of which no polygon remains", kLeftOut, title);
  return false;
}

}  // namespace dtrain::data::coco
