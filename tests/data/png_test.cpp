// PNG: round trips, every colour type, damage, limits, and format detection.
#include "dtrain/data/png.h"

#include <filesystem>
#include <fstream>

#include "dtrain/core/error.h"
#include "tests/data/noise.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

void expect_equal(const ImageView& a, const ImageView& b) {
  ASSERT_EQ(a.width, b.width);
  ASSERT_EQ(a.height, b.height);
  for (int y = 0; y < a.height; ++y)
    for (int i = 0; i < 3 * a.width; ++i) ASSERT_EQ(a.row(y)[i], b.row(y)[i]) << "row " << y << " byte " << i;
}

// Test images are hex dumps of 2x2 pixels.
std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

TEST(Png, RoundTripIsExact) {
  const Image image = noise(37, 21, 3);
  const std::vector<std::byte> bytes = encode_png(image.view());
  ImageDecoder decoder;
  const ImageInfo info = decoder.open(bytes);
  EXPECT_EQ(info.format, ImageFormat::png);
  EXPECT_EQ(info.components, 3);
  expect_equal(decoder.decode(), image.view());
  EXPECT_EQ(decoder.warning(), "");
}

TEST(Png, WindowsEqualTheWholeImage) {
  const Image image = noise(37, 21, 3);
  const std::vector<std::byte> bytes = encode_png(image.view());
  ImageDecoder decoder;
  for (const Window& window : {Window{0, 0, 1, 1}, {36, 20, 1, 1}, {5, 7, 20, 10}, {0, 20, 37, 1}}) {
    decoder.open(bytes);
    ImageView part = image.view();
    part.pixels += window.y * part.stride + 3 * window.x;
    part.width = window.width;
    part.height = window.height;
    expect_equal(decoder.decode(window), part);
  }
}

TEST(Png, EveryColourTypeBecomesRgb) {
  struct Case {
    std::string name, hex;
    std::vector<int> rgb;
  };
  const std::vector<Case> cases = {
      {"grey, 1 bit",
       "89504e470d0a1a0a0000000d49484452000000020000000201000000005acd30890000000c4944415478da63686070000001c400c1a69be"
       "6ba0000000049454e44ae426082",
       {255, 255, 255, 0, 0, 0, 0, 0, 0, 255, 255, 255}},
      {"grey, 8 bits",
       "89504e470d0a1a0a0000000d494844520000000200000002080000000057dd52f80000000e4944415478da6360e56468f80f000242018e7"
       "53897890000000049454e44ae426082",
       {5, 5, 5, 9, 9, 9, 128, 128, 128, 255, 255, 255}},
      {"grey, 16 bits: the high byte",
       "89504e470d0a1a0a0000000d4948445200000002000000021000000000074d8ebb000000124944415478da6360fdcfc9c0d050ffff3f000"
       "ee8040bd3c728650000000049454e44ae426082",
       {5, 5, 5, 9, 9, 9, 128, 128, 128, 255, 255, 255}},
      {"grey with alpha: dropped",
       "89504e470d0a1a0a0000000d4948445200000002000000020804000000d8bfc5af000000124944415478da636065e06c6068f8ff9f01000"
       "a71030d2c60e4860000000049454e44ae426082",
       {5, 5, 5, 9, 9, 9, 128, 128, 128, 255, 255, 255}},
      {"RGBA: alpha dropped",
       "89504e470d0a1a0a0000000d494844520000000200000002080600000072b60d240000001a4944415478da6360646266606165fbcfc0cec"
       "1d9c0c5cdc308000ea001cf1967e6b60000000049454e44ae426082",
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
      {"RGB, 16 bits",
       "89504e470d0a1a0a0000000d4948445200000002000000021002000000ad444630000000224944415478da63604c664a664e6649664d664"
       "b666067e060e064e062e066e0f90f00301c03a0e4c3cb2c0000000049454e44ae426082",
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
      {"palette, 2 bits",
       "89504e470d0a1a0a0000000d49484452000000020000000202030000000fd8e5b70000000c504c54450a141ec8643200ff00070809eefa8"
       "12a0000000c4944415478da631060d8000000e400c119553bfb0000000049454e44ae426082",
       {10, 20, 30, 200, 100, 50, 0, 255, 0, 7, 8, 9}},
      {"palette with transparency: dropped",
       "89504e470d0a1a0a0000000d49484452000000020000000208030000004568fd160000000c504c54450a141ec8643200ff00070809eefa8"
       "12a0000000274524e5300809b2b4e180000000e4944415478da63606064606206000011000783ca64640000000049454e44ae426082",
       {10, 20, 30, 200, 100, 50, 0, 255, 0, 7, 8, 9}},
      {"interlaced",
       "89504e470d0a1a0a0000000d49484452000000020000000208020000018ad3aae5000000174944415478da63606462666061656360e7e0e"
       "4e2e601000196004f280bd2370000000049454e44ae426082",
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
  };
  ImageDecoder decoder;
  for (const Case& c : cases) {
    const std::vector<std::byte> bytes = from_hex(c.hex);
    decoder.open(bytes);
    const ImageView view = decoder.decode();
    ASSERT_EQ(view.width, 2) << c.name;
    ASSERT_EQ(view.height, 2) << c.name;
    for (int i = 0; i < 12; ++i) EXPECT_EQ(view.row(i / 6)[i % 6], c.rgb[static_cast<size_t>(i)]) << c.name;
  }
}

TEST(Png, RejectsDamageAndLimits) {
  const std::vector<std::byte> bytes = encode_png(noise(40, 40, 3).view());
  ImageDecoder decoder;
  std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bytes.size() / 2));
  decoder.open(cut);
  EXPECT_THROW(decoder.decode(), Error);
  EXPECT_THROW(decoder.open({bytes.data(), 20}), Error);
  std::vector<std::byte> flipped = bytes;
  flipped[bytes.size() / 2] ^= std::byte{1};
  decoder.open(flipped);
  EXPECT_THROW(decoder.decode(), Error);
  ImageDecoder narrow({.limits = {.max_pixels = 1599}});
  EXPECT_THROW(narrow.open(bytes), Error);
  decoder.open(bytes);
  decoder.decode();
}

TEST(Png, IsDetectedByContent) {
  const auto path = test_data("jpeg_corner/jpeg-decoder/reftest/images/mozilla/jpg-size-6x6.jpg");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "SKIPPED: " << path;
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  ImageDecoder decoder;
  const ImageInfo info = decoder.open(std::as_bytes(std::span(text)));
  EXPECT_EQ(info.format, ImageFormat::png);
  EXPECT_EQ(info.width, 6);
  decoder.decode();
}

}  // namespace
}  // namespace dtrain::data
