// An image of a file on a canvas of its own, as evaluation would see it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "apps/detection/found.h"
#include "apps/mask_rcnn/settings.h"
#include "data/image.h"
#include "data/resize.h"

namespace dtrain::mask_rcnn {

// Where evaluation puts an image.
struct Placement {
  data::ImageSize size{};                       // of the image on its canvas
  int64_t canvas_height = 0, canvas_width = 0;  // the next multiples of 32
  Filter<float> rows{}, columns{};              // from the image to that size
};
Placement placement_of(const data::ImageSize& image, const DataSettings& settings);

struct PlacedImage {
  data::Image original{};  // as it is in the file
  Tensor pixels{};         // [1, h, w, 3] u8, resized and padded to multiples of 32
  Tensor sizes{};          // [1, 2] f32, as models::DetectionTruth::sizes
  detection::ImagePlace place{};
};

// Both throw Error(Fault::data) where the file cannot be read or the image decoded.
std::vector<std::byte> read_image_file(const std::string& path);
data::Image decode_image(std::span<const std::byte> bytes, const data::ImageLimits& limits = {});

PlacedImage place_image(Context& context, data::Image image, const DataSettings& settings);

}  // namespace dtrain::mask_rcnn
