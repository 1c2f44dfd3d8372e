// PNG images of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/core/context.h"
#include "dtrain/data/image.h"

namespace dtrain::cli {

// An 8-bit RGB PNG file, with its size in pixels.
struct Picture {
  int width = 0, height = 0;
  std::string png{};
};

// Maximum number of images per step.
inline constexpr int64_t kMostPictures = 3;

// The first images, at most `most`, of a batch [n, h, w, 3] with pixels from 0 to 255, u8 or f32, on the device. Waits
// for the device.
std::vector<data::Image> first_images(Context& context, const Tensor& batch, int64_t most = kMostPictures);

std::vector<Picture> encoded(const std::vector<data::Image>& images);

}  // namespace dtrain::cli
