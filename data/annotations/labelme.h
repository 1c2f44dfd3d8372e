// Files of labelme.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/annotations/labelled_image.h"

namespace dtrain::data::annotations {

// Bytes of the image that a labelme file holds as imageData. Throws Error(Fault::data).
std::string embedded_image(const std::string& path);

// Parses a labelme file. `title` names it in messages. `find` returns the path of the image file for imagePath, or "",
// and `measure` the size of an image for a file without imageHeight and imageWidth. Throws Error(Fault::data).
struct LabelmeFiles {
  std::function<std::string(const std::string& image_path)> find{};
  std::function<ImageSize(const std::string& image)> measure{};
};
LabelledImage parse_labelme(std::string_view text, const std::string& title, const LabelmeFiles& files);

}  // namespace dtrain::data::annotations
