// Shapes of labelme as objects.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "data/annotations/labelled_image.h"

namespace dtrain::data::annotations {

// Adds the objects of a list of shapes: a polygon, rectangle, circle or mask each, or all of one label and group_id.
// Other shapes are left out and counted. `image` has its size; `title` names the file in messages.
void add_shapes(const nlohmann::json& shapes, const std::string& title, LabelledImage& image);

}  // namespace dtrain::data::annotations
