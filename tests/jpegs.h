// Synthetic smooth JPEGs, and their samples by host preprocessing and by deferred device preprocessing.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "dtrain/data/augment.h"
#include "dtrain/data/jpeg.h"

namespace dtrain {

// No sharp edges, so that decoders with different chroma upsampling agree closely.
inline data::Image smooth_picture(int width, int height, int number) {
  data::Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const double wave = std::sin(0.07 * x * (c + 1) + number) + std::cos(0.05 * y * (3 - c) - number);
        image.pixels[static_cast<size_t>(3 * (y * width + x) + c)] = static_cast<uint8_t>(128 + 50 * wave);
      }
  return image;
}

inline std::vector<std::byte> smooth_jpeg(int width, int height, int number, const data::JpegEncodeOptions& options) {
  return data::encode_jpeg(smooth_picture(width, height, number).view(), options);
}

// Every format that hardware decoders support, in odd sizes.
inline std::vector<std::vector<std::byte>> usual_jpegs() {
  using data::Sampling;
  return {smooth_jpeg(64, 48, 0, {.sampling = Sampling::s444}),
          smooth_jpeg(61, 47, 1, {.sampling = Sampling::s420}),
          smooth_jpeg(33, 65, 2, {.sampling = Sampling::s422}),
          smooth_jpeg(45, 38, 3, {.sampling = Sampling::s440}),
          smooth_jpeg(37, 29, 4, {.grey = true}),
          smooth_jpeg(3, 2, 5, {.sampling = Sampling::s420}),
          smooth_jpeg(200, 31, 6, {.quality = 70})};
}

inline data::SampleKey key_of(size_t sample) { return {.seed = 5, .epoch = 2, .sample = sample, .position = sample}; }

// [height, width, 3] each, preprocessed on the host.
template <class T>
std::vector<T> samples_by_host(const std::vector<std::vector<std::byte>>& jpegs,
                               const data::PreprocessOptions& options) {
  const auto preprocessor = data::make_preprocess(options)();
  const auto size = static_cast<size_t>(3 * options.height * options.width);
  std::vector<T> samples(jpegs.size() * size);
  for (size_t i = 0; i < jpegs.size(); ++i) preprocessor->run(jpegs[i], {}, key_of(i), samples.data() + i * size);
  return samples;
}

// One per image; without a JPEG if the device must not decode it.
inline std::vector<EncodedImage> deferred(const std::vector<std::vector<std::byte>>& jpegs,
                                          const data::PreprocessOptions& options, std::shared_ptr<Allocator> memory) {
  const auto preprocessor = data::make_preprocess(options)();
  std::vector<EncodedImage> images(jpegs.size(), EncodedImage(std::move(memory)));
  for (size_t i = 0; i < jpegs.size(); ++i) preprocessor->defer(jpegs[i], {}, key_of(i), images[i]);
  return images;
}

// Presets that can be deferred to a device: all except aws and colour distortion.
inline std::vector<data::PreprocessOptions> deferrable_presets(int height, int width) {
  using data::Preset, data::TfResize;
  std::vector<data::PreprocessOptions> all;
  for (const bool training : {true, false}) {
    for (const Preset preset : {Preset::torchvision, Preset::official})
      all.push_back({.preset = preset, .training = training, .height = height, .width = width});
    for (const TfResize resize : {TfResize::bilinear, TfResize::round_robin, TfResize::crop})
      all.push_back({.training = training, .height = height, .width = width, .resize = resize});
  }
  return all;
}

}  // namespace dtrain
