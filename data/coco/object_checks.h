// Checks of boxes and polygons that are the same for all formats of annotations.
#pragma once

#include <string>
#include <string_view>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::data::coco {

inline constexpr std::string_view kLeftOut = "left out";

// Whether an object with this box can be used for training; else adds a finding. `title`: the object in messages.
bool check_box(const BoundingBox& box, const std::string& title, Findings& findings);

// Keeps the valid polygons, as detectron2 does, and adds a finding for each other one. Returns false, with a finding,
// if none remains.
bool keep_polygons(Polygons& polygons, const std::string& title, Findings& findings);

// Whether a coordinate is not finite or beyond kMaxCoordinate.
bool has_far_corner(const std::vector<double>& polygon);

inline constexpr std::string_view kShortPolygon = "polygons of fewer than 3 corners or an odd count of numbers";
inline constexpr std::string_view kFarPolygon = "polygons with coordinates that are not finite or beyond 1e6";

}  // namespace dtrain::data::coco
