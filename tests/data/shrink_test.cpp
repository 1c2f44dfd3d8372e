// Downscaling of images for faster reading.
#include "data/shrink.h"

#include "data/shards.h"
#include "data/synthetic.h"
#include "dtrain/data/example.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

// Upper part of a synthetic image: `width` x `height` pixels.
std::vector<std::byte> drawn_jpeg(int width, int height, int quality) {
  const Image image = draw_image(4, 10, std::max(width, height), 1, 2);
  ImageView view = image.view();
  view.width = width;
  view.height = height;
  return encode_jpeg(view, {.quality = quality, .optimize = true});
}

Image pixels_in(std::span<const std::byte> encoded) {
  ImageDecoder decoder;
  decoder.open(encoded);
  const ImageView view = decoder.decode();
  Image image(view.width, view.height);
  for (int y = 0; y < view.height; ++y)
    std::copy_n(view.row(y), 3 * view.width, image.pixels.data() + 3 * y * view.width);
  return image;
}

TEST(Shrink, ResizesTheShorterSide) {
  const auto size = [](int width, int height, const ShrinkOptions& options) {
    const ShrunkImage image = shrink_image(drawn_jpeg(width, height, 95), options);
    const Image pixels = pixels_in(image.jpeg);
    EXPECT_EQ(pixels.width, image.width);
    EXPECT_EQ(pixels.height, image.height);
    return std::pair(image.width, image.height);
  };
  EXPECT_EQ(size(200, 100, {.size = 40}), std::pair(80, 40));
  EXPECT_EQ(size(100, 333, {.size = 40}), std::pair(40, 133));
  EXPECT_EQ(size(60, 30, {.size = 40}), std::pair(60, 30));
  EXPECT_EQ(size(60, 30, {.size = 40, .stretch = true}), std::pair(40, 40));
  expect_error([] { shrink_image(drawn_jpeg(8, 8, 90), {.size = 0}); }, Fault::config, "images resized to 0 pixels");
  expect_error([] { shrink_image({}, {}); }, Fault::data, "");
}

// 2x2 pixels of one colour become one pixel of it.
TEST(Shrink, AveragesPixels) {
  const Image image = draw_image(3, 10, 64, 1, 2);
  Image doubled(128, 128);
  for (int y = 0; y < 128; ++y)
    for (int x = 0; x < 128; ++x)
      std::copy_n(image.view().row(y / 2) + 3 * (x / 2), 3, doubled.pixels.data() + 3 * (128 * y + x));
  const ShrunkImage shrunk = shrink_image(encode_png(doubled.view()), {.size = 64, .quality = 100});
  const Image found = pixels_in(shrunk.jpeg);
  ASSERT_EQ(found.width, 64);
  double sum = 0;
  for (size_t i = 0; i < 3 * 64 * 64; ++i) sum += std::abs(found.pixels[i] - image.pixels[i]);
  EXPECT_LT(sum / (3 * 64 * 64), 6) << "as far as 4:2:0 keeps colours";
}

TEST(Shrink, KeepsBytesUnlessSmaller) {
  const std::vector<std::byte> coarse = drawn_jpeg(64, 48, 5), fine = drawn_jpeg(64, 48, 98);
  EXPECT_EQ(shrink_image(coarse, {}).jpeg, coarse);
  EXPECT_LT(shrink_image(fine, {}).jpeg.size(), fine.size());
  const std::vector<std::byte> png = encode_png(Image(9, 9).view());
  EXPECT_EQ(sniff_image(shrink_image(png, {}).jpeg), ImageFormat::jpeg);
}

TEST(Shrink, RecordsKeepTheirOtherFeatures) {
  const std::vector<std::byte> jpeg = drawn_jpeg(90, 60, 95);
  const std::vector<NormalizedBox> boxes = {{0.25f, 0, 1, 0.5f}};
  const std::string record = image_example({.encoded = jpeg,
                                            .format = "PNG",
                                            .width = 90,
                                            .height = 60,
                                            .label = 7,
                                            .synset = "n7",
                                            .text = "seven",
                                            .filename = "7.JPEG",
                                            .boxes = boxes});
  const ShrunkImage image = shrink_image(jpeg, {.size = 20});
  const std::string expected = image_example({.encoded = image.jpeg,
                                              .format = "JPEG",
                                              .width = 30,
                                              .height = 20,
                                              .label = 7,
                                              .synset = "n7",
                                              .text = "seven",
                                              .filename = "7.JPEG",
                                              .boxes = boxes});
  std::string warning;
  EXPECT_EQ(shrink_record(std::as_bytes(std::span(record)), {.size = 20}, warning), expected);
  ExampleWriter writer;
  writer.int64("image/object/class/label", 1);
  const std::string detection = writer.take();
  expect_error([&] { shrink_record(std::as_bytes(std::span(detection)), {}, warning); }, Fault::data,
               "of object detection");
}

}  // namespace
}  // namespace dtrain::data
