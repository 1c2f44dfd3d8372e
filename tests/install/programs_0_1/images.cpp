// Images of version 0.1: decoding, encoding, resampling, augmentation.
#include <cstdio>

#include "data/augment.h"
#include "data/augmented.h"
#include "data/auto_augment.h"
#include "data/color_jitter.h"
#include "data/crop_sampler.h"
#include "data/erasing.h"
#include "data/image.h"
#include "data/image_ops.h"
#include "data/jpeg.h"
#include "data/mixing.h"
#include "data/png.h"
#include "data/preprocess.h"
#include "data/resize.h"
#include "libdtrain/ops/jpeg_decode.h"

using namespace dtrain;

int main() {
  data::Image image(64, 48);
  RandomStream random(/*seed=*/1, /*stream=*/0);
  for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(random.below(256));
  data::ImageEditor editor;
  data::jitter_colors({.brightness = 0.4f, .hue = 0.1f}, editor, image, random);
  editor.apply(data::ImageOp::rotate, 10, image);
  const std::vector<data::Change> changes =
      data::draw_changes({.policy = data::AugmentPolicy::rand_augment}, image.width, image.height, random);
  for (const data::Change& change : changes) editor.apply(change.op, change.magnitude, image);

  const std::vector<data::Box> boxes = {{0.25f, 0.25f, 0.75f, 0.75f}};
  const data::Window crop = data::sample_distorted_box(image.width, image.height, boxes, random);
  const data::Window erased = data::draw_erased({.probability = 1}, image.width, image.height, random);
  const std::vector<std::byte> jpeg = data::encode_jpeg(image.view(), {.quality = 95});
  const std::vector<std::byte> png = data::encode_png(image.view());
  data::ImageDecoder decoder;
  const data::ImageInfo info = decoder.open(jpeg);
  const data::ImageView window = decoder.decode(crop);
  Filter<float> filter;
  data::make_filter({.in = 64, .out = 32, .begin = 0, .count = 32}, data::ResizeMethod::bilinear, filter);

  const data::PreprocessOptions options{
      .preset = data::Preset::torchvision, .training = true, .height = 32, .width = 32};
  const data::MakePreprocess make = data::make_preprocess(options);
  const data::SampleAugmentation augmentation{.erasing = {.probability = 0.25f}};
  const data::Mixture mixture = data::draw_mixture({.mixup_alpha = 0.2}, 32, 32, /*seed=*/1, /*cursor=*/0);
  const JpegDecodeOptions on_gpu{.fancy_upsampling = false};
  std::printf("%d x %d, window %d x %d, %zu and %zu bytes, %d taps, %s, %d %d %.2f %d\n", info.width, info.height,
              window.width, window.height, jpeg.size(), png.size(), filter.taps, make.shape.to_string().c_str(),
              erased.width > 0, augmentation.any(), mixture.share, on_gpu.fancy_upsampling);
  return info.width == 64 && make.dtype == DType::u8 ? 0 : 1;
}
