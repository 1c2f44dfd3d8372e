#include "apps/cli/pictures.h"

#include <algorithm>
#include <cmath>

#include "dtrain/data/png.h"

namespace dtrain::cli {
namespace {

uint8_t level(float pixel) { return static_cast<uint8_t>(std::clamp(std::round(pixel), 0.f, 255.f)); }

}  // namespace

std::vector<data::Image> first_images(Context& context, const Tensor& batch, int64_t most) {
  std::vector<data::Image> images;
  const auto height = static_cast<int>(batch.dim(1)), width = static_cast<int>(batch.dim(2));
  for (int64_t row = 0; row < std::min(most, batch.dim(0)); ++row) {
    data::Image& image = images.emplace_back(width, height);
    const Tensor pixels = batch.slice(row, row + 1);
    if (pixels.dtype() == DType::u8) {
      context.download(pixels, image.pixels.data(), "picture");
      continue;
    }
    std::vector<float> levels(static_cast<size_t>(pixels.shape().count()));
    context.download(pixels, levels.data(), "picture");
    std::transform(levels.begin(), levels.end(), image.pixels.begin(), level);
  }
  return images;
}

std::vector<Picture> encoded(const std::vector<data::Image>& images) {
  std::vector<Picture> pictures;
  for (const data::Image& image : images) {
    const std::vector<std::byte> png = data::encode_png(image.view());
    pictures.push_back({image.width, image.height, {reinterpret_cast<const char*>(png.data()), png.size()}});
  }
  return pictures;
}

}  // namespace dtrain::cli
