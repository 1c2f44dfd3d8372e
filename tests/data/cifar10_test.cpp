// CIFAR preprocessing: identity in evaluation, training crops, and resizing.
#include "dtrain/data/cifar10.h"

#include "dtrain/data/augment.h"
#include "dtrain/data/image.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/resize.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

std::vector<std::byte> picture() {
  Image image(32, 32);
  for (size_t i = 0; i < 3 * 32 * 32; ++i) image.pixels[i] = static_cast<uint8_t>(i * 13 % 251);
  return encode_jpeg(image.view());
}

// Reference: [32, 32, 3] bytes of a full decode, cropped and flipped in training.
Image expected(bool training, const SampleKey& key) {
  ImageDecoder decoder;
  const std::vector<std::byte> bytes = picture();
  decoder.open(bytes);
  const ImageView view = decoder.decode();
  Image image(32, 32);
  if (training) {
    RandomStream random = sample_stream(key);
    pad_crop_flip(view, random, image.pixels.data());
  } else {
    for (int y = 0; y < 32; ++y) std::copy_n(view.row(y), 96, image.pixels.data() + 96 * y);
  }
  return image;
}

std::vector<float> run(const CifarOptions& options, const SampleKey& key) {
  std::vector<float> pixels(static_cast<size_t>(3 * options.height * options.width), -1.0f);
  EXPECT_EQ(make_cifar_preprocess(options)()->run(picture(), {}, key, pixels.data()).damage, "");
  return pixels;
}

TEST(CifarPreprocess, CropsInTrainingOnly) {
  std::vector<float> first;
  for (uint64_t sample = 0; sample < 4; ++sample) {
    for (bool training : {false, true}) {
      const SampleKey key{.seed = 5, .epoch = 1, .sample = sample, .position = sample};
      const Image image = expected(training, key);
      const std::vector<float> pixels = run({training, 32, 32}, key);
      EXPECT_EQ(pixels, std::vector<float>(image.pixels.begin(), image.pixels.begin() + 3 * 32 * 32));
      if (training && sample == 0) first = pixels;
      if (training && sample > 0) {
        EXPECT_NE(pixels, first);
      }
    }
  }
}

TEST(CifarPreprocess, ResizesToTheSizeAskedFor) {
  const SampleKey key{.seed = 5, .epoch = 0, .sample = 2, .position = 2};
  const Image image = expected(true, key);
  Filter<float> across, down;
  make_filter({32, 20, 0, 20}, ResizeMethod::bilinear, across);
  make_filter({32, 24, 0, 24}, ResizeMethod::bilinear, down);
  std::vector<float> rows, resized(3 * 20 * 24);
  resample(image.view(), across, down, rows, resized.data());
  EXPECT_EQ(run({true, 24, 20}, key), resized);
}

TEST(CifarPreprocess, StatesOutputShapeAndType) {
  EXPECT_EQ(make_cifar_preprocess({true, 20, 24}).shape, (Shape{20, 24, 3}));
  EXPECT_EQ(make_cifar_preprocess({true, 20, 24}).dtype, DType::f32);
  expect_error([] { make_cifar_preprocess({true, 0, 24}); }, Fault::config, "24x0 pixels");
}

TEST(CifarPreprocess, RejectsInvalidImages) {
  std::vector<float> pixels(3 * 32 * 32);
  const std::vector<std::byte> junk(10);
  expect_error([&] { make_cifar_preprocess({})()->run(junk, {}, {}, pixels.data()); }, Fault::data,
               "is no JPEG, PNG, BMP");
}

}  // namespace
}  // namespace dtrain::data
