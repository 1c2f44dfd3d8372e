#include "apps/mask_rcnn/annotated_images.h"

#include <filesystem>

#include <fmt/format.h>

#include "apps/detection/placed_image.h"

namespace dtrain::mask_rcnn {
namespace {

using data::Orientation;

bool has_size(const data::Image& pixels, int64_t width, int64_t height) {
  return pixels.width == width && pixels.height == height;
}

}  // namespace

data::Image read_annotated_image(const std::string& folder, const data::coco::AnnotatedImage& image,
                                 Orientation orientation) {
  const std::string path = folder + "/" + image.file_name;
  const std::vector<std::byte> bytes = detection::read_image_file(path);
  data::Image pixels;
  try {
    pixels = detection::decode_image(bytes, {.orientation = orientation});
    if (orientation == Orientation::apply && has_size(pixels, image.height, image.width))
      pixels = detection::decode_image(bytes, {.orientation = Orientation::ignore});
  } catch (const Error& error) {
    throw Error(error.fault(), path + ": " + error.what());
  }
  if (has_size(pixels, image.width, image.height)) return pixels;
  const bool turned = orientation == Orientation::ignore && has_size(pixels, image.height, image.width);
  throw Error(Fault::data, fmt::format("{}: an image of {}x{} pixels; its annotations expect {}x{}{}", path,
                                       pixels.width, pixels.height, image.width, image.height,
                                       turned ? "; --exif_orientation=apply rotates JPEGs by their EXIF tag" : ""));
}

data::Image drawn(const data::Image& image, std::span<const DrawnObject> objects) {
  Canvas canvas(image.view());
  draw_objects(canvas, objects);
  return canvas.image();
}

std::string PictureNames::take(const data::coco::AnnotatedImage& image) {
  const std::string stem = std::filesystem::path(image.file_name).stem();
  if (taken_.insert(stem).second) return stem + ".png";
  std::string other = fmt::format("{}-{}", stem, image.id);
  while (!taken_.insert(other).second) other += "-";
  return other + ".png";
}

}  // namespace dtrain::mask_rcnn
