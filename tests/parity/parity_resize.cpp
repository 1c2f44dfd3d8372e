// The engine's side of torchvision_resize.py: preprocessing of detection images by the preset torchvision.
//   parity_resize IMAGES RESULTS float64|float32
// IMAGES holds `sizes` [n, 2] and `image0`, `image1` ... [h, w, 3] with integer values, all f32. RESULTS receives the
// `sizes` after resizing, and the resized, normalised images. The last argument is PREPROC.RESIZE_SCALE_DTYPE.
#include <algorithm>
#include <cstdio>

#include "apps/mask_rcnn/predictor.h"
#include "dtrain/ops/pointwise.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

data::Image image_of(Context& context, const Tensor& pixels) {
  data::Image image(static_cast<int>(pixels.dim(1)), static_cast<int>(pixels.dim(0)));
  std::vector<float> values(static_cast<size_t>(pixels.count()));
  context.download(pixels, values.data(), "parity");
  std::transform(values.begin(), values.end(), image.pixels.begin(), [](float x) { return static_cast<uint8_t>(x); });
  return image;
}

Tensor resized(Context& context, const Tensor& pixels, const mask_rcnn::Settings& settings) {
  detection::Placement placement = mask_rcnn::evaluation_placement({pixels.dim(0), pixels.dim(1)}, settings.data);
  placement.canvas_height = placement.size.height, placement.canvas_width = placement.size.width;  // without padding
  const detection::PlacedImage placed = detection::place_image(context, image_of(context, pixels), placement);
  PixelNormalization normalization;
  for (int color = 0; color < 3; ++color) {
    normalization.mean[color] = settings.data.mean[color];
    normalization.scale[color] = 1 / settings.data.deviation[color];
  }
  const Tensor normalised = normalize_pixels(context, placed.pixels, normalization);
  return normalised.view({normalised.dim(1), normalised.dim(2), 3});
}

void run(const std::string& images_path, const std::string& results_path, const std::string& type) {
  const auto context = parity_context("cpu");
  mask_rcnn::Settings settings = mask_rcnn::preset_settings("torchvision");
  mask_rcnn::apply(settings, "PREPROC.RESIZE_SCALE_DTYPE=" + type);
  const SafetensorsFile images(images_path);
  const Tensor sizes = read_tensor(*context, images, "sizes");
  for (int64_t i = 0; i < sizes.dim(0); ++i) {
    float* const row = sizes.data<float>() + 2 * i;
    const auto found =
        mask_rcnn::evaluation_placement({static_cast<int64_t>(row[0]), static_cast<int64_t>(row[1])}, settings.data);
    row[0] = static_cast<float>(found.size.height), row[1] = static_cast<float>(found.size.width);
  }
  TensorFile results;
  results.add(*context, "sizes", sizes);
  for (int i = 0; images.find(concat("image", i)) != nullptr; ++i) {
    const std::string name = concat("image", i);
    results.add(*context, name, resized(*context, read_tensor(*context, images, name), settings));
  }
  results.write(results_path);
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw dtrain::Error(dtrain::Fault::config, "usage: parity_resize IMAGES RESULTS float64|float32");
    dtrain::run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
