#include "apps/detection/placed_image.h"

#include <algorithm>

#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::detection {
namespace {

// The image on a canvas of zeros.
std::vector<uint8_t> resized_onto(const Placement& placement, const data::ImageView& image) {
  std::vector<float> rows;
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * placement.canvas_height * placement.canvas_width));
  data::resample(image, placement.columns, placement.rows, rows, pixels.data(), 3 * placement.canvas_width);
  return pixels;
}

std::vector<float> exactly_resized_onto(Placement placement, const data::ImageView& image) {
  std::vector<float> rows, pixels(static_cast<size_t>(3 * placement.canvas_height * placement.canvas_width));
  data::pad_with_zeros(placement.columns, 0, static_cast<int>(placement.canvas_width));
  data::pad_with_zeros(placement.rows, 0, static_cast<int>(placement.canvas_height));
  data::resample(image, placement.columns, placement.rows, rows, pixels.data());
  return pixels;
}

}  // namespace

std::vector<std::byte> read_image_file(const std::string& path) {
  const InputFile file(path);
  if (file.size() > kMaxRecordBytes)
    throw Error(Fault::data, concat(path, ": ", file.size(), " bytes, expected at most ", kMaxRecordBytes));
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

data::Image decode_image(std::span<const std::byte> bytes, const data::DecodeOptions& options,
                         data::SampleNotes* notes) {
  data::ImageDecoder decoder(options);
  const data::ImageInfo info = decoder.open(bytes);
  const data::ImageView view = decoder.decode();
  if (notes != nullptr) *notes = data::notes_of(info, decoder, options.orientation);
  data::Image image(view.width, view.height);
  for (int y = 0; y < view.height; ++y)
    std::copy_n(view.row(y), size_t{3} * static_cast<size_t>(view.width),
                image.pixels.data() + size_t{3} * static_cast<size_t>(y) * static_cast<size_t>(view.width));
  return image;
}

Placement placement_of(const data::ImageSize& image, const data::ImageSize& size, const data::ImageSize& canvas,
                       bool rounds_pixels) {
  const auto axis = [](int64_t in, int64_t out) {
    return data::Axis{static_cast<int>(in), static_cast<int>(out), 0, static_cast<int>(out), false};
  };
  const auto coordinates = rounds_pixels ? data::Coordinates::f64 : data::Coordinates::f32;
  Placement placement{
      .size = size, .canvas_height = canvas.height, .canvas_width = canvas.width, .rounds_pixels = rounds_pixels};
  data::make_half_pixel_filter(axis(image.height, size.height), placement.rows, coordinates);
  data::make_half_pixel_filter(axis(image.width, size.width), placement.columns, coordinates);
  return placement;
}

PlacedImage place_image(Context& context, data::Image original, const Placement& placement) {
  PlacedImage placed{.original = std::move(original)};
  const data::ImageView image = placed.original.view();
  const data::ImageSize size = placement.size;
  placed.pixels = context.empty({1, placement.canvas_height, placement.canvas_width, 3},
                                placement.rounds_pixels ? DType::u8 : DType::f32);
  placed.sizes = context.empty({1, 2});
  placed.place = {0, static_cast<double>(size.height), static_cast<double>(size.width), image.height, image.width};
  if (placement.rounds_pixels)
    context.upload(resized_onto(placement, image).data(), placed.pixels);
  else
    context.upload(exactly_resized_onto(placement, image).data(), placed.pixels);
  const float sides[] = {static_cast<float>(size.height), static_cast<float>(size.width)};
  context.upload(sides, placed.sizes);
  return placed;
}

}  // namespace dtrain::detection
