// Images of a batch as pictures for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image.h"
#include "libdtrain/core/context.h"

namespace dtrain::cli {

// A PNG file of 8-bit RGB, and its size in pixels.
struct Picture {
  int width = 0, height = 0;
  std::string png{};
};

// Images of a step that are shown.
inline constexpr int64_t kMostPictures = 3;

// The first images, `most` at most, of a batch [n, h, w, 3] of pixels from 0 to 255, u8 or f32, on the device, which is
// waited for.
std::vector<data::Image> first_images(Context& context, const Tensor& batch, int64_t most = kMostPictures);

std::vector<Picture> encoded(const std::vector<data::Image>& images);

}  // namespace dtrain::cli
