#include "apps/mask_rcnn/annotated_images.h"

#include <filesystem>

#include <fmt/format.h>

#include "apps/detection/placed_image.h"

namespace dtrain::mask_rcnn {

data::Image read_annotated_image(const std::string& folder, const data::coco::Image& image) {
  const std::string path = folder + "/" + image.file_name;
  const std::vector<std::byte> bytes = detection::read_image_file(path);
  data::Image pixels;
  try {
    pixels = detection::decode_image(bytes);
  } catch (const Error& error) {
    throw Error(error.fault(), path + ": " + error.what());
  }
  if (pixels.width != image.width || pixels.height != image.height)
    throw Error(Fault::data, fmt::format("{}: an image of {}x{} pixels; its annotations expect {}x{}", path,
                                         pixels.width, pixels.height, image.width, image.height));
  return pixels;
}

data::Image drawn(const data::Image& image, std::span<const DrawnObject> objects) {
  Canvas canvas(image.view());
  draw_objects(canvas, objects);
  return canvas.image();
}

std::string PictureNames::take(const data::coco::Image& image) {
  const std::string stem = std::filesystem::path(image.file_name).stem();
  if (taken_.insert(stem).second) return stem + ".png";
  std::string other = fmt::format("{}-{}", stem, image.id);
  while (!taken_.insert(other).second) other += "-";
  return other + ".png";
}

}  // namespace dtrain::mask_rcnn
