#include "apps/mask_rcnn/placed_image.h"

#include <algorithm>

#include "data/resize.h"
#include "libdtrain/io/input_file.h"

namespace dtrain::mask_rcnn {
namespace {

// The image at `size`, on a canvas [1, h, w, 3] of zeros.
std::vector<uint8_t> resized_onto(const Shape& canvas, const data::ImageView& image, const data::ImageSize& size) {
  const auto axis = [](int in, int64_t out) {
    return data::Axis{in, static_cast<int>(out), 0, static_cast<int>(out), false};
  };
  Filter<float> x, y;
  data::make_half_pixel_filter(axis(image.width, size.width), x);
  data::make_half_pixel_filter(axis(image.height, size.height), y);
  std::vector<float> rows;
  std::vector<uint8_t> pixels(static_cast<size_t>(canvas.count()));
  data::resample(image, x, y, rows, pixels.data(), 3 * canvas[2]);
  return pixels;
}

}  // namespace

std::vector<std::byte> read_image_file(const std::string& path) {
  const InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

data::Image decode_image(std::span<const std::byte> bytes) {
  data::ImageDecoder decoder;
  decoder.open(bytes);
  const data::ImageView view = decoder.decode();
  data::Image image(view.width, view.height);
  for (int y = 0; y < view.height; ++y)
    std::copy_n(view.row(y), size_t{3} * static_cast<size_t>(view.width),
                image.pixels.data() + size_t{3} * static_cast<size_t>(y) * static_cast<size_t>(view.width));
  return image;
}

PlacedImage place_image(Context& context, data::Image original, const DataSettings& settings) {
  PlacedImage placed{.original = std::move(original)};
  const data::ImageView image = placed.original.view();
  const data::ResizeRule& rule = settings.evaluation_resize;
  const data::ImageSize size = data::resized({image.height, image.width}, rule.max_short_edge, rule);
  constexpr int64_t kMultiple = 32;
  const auto padded = [](int64_t side) { return (side + kMultiple - 1) / kMultiple * kMultiple; };
  const Shape shape{1, padded(size.height), padded(size.width), 3};
  placed.pixels = context.empty(shape, DType::u8);
  placed.sizes = context.empty({1, 2});
  placed.place = {0, static_cast<double>(size.height), static_cast<double>(size.width), image.height, image.width};
  context.upload(resized_onto(shape, image, size).data(), placed.pixels);
  const float sides[] = {static_cast<float>(size.height), static_cast<float>(size.width)};
  context.upload(sides, placed.sizes);
  return placed;
}

}  // namespace dtrain::mask_rcnn
