// Corner cases of valid images: extreme sides, trailing bytes, truncation.
#include <algorithm>

#include "data/synthetic.h"
#include "dtrain/core/error.h"
#include "dtrain/data/jpeg.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

using Bytes = std::vector<std::byte>;

Image decoded(const Bytes& bytes, std::string* warning = nullptr) {
  ImageDecoder decoder;
  decoder.open(bytes);
  const ImageView view = decoder.decode();
  Image image(view.width, view.height);
  for (int y = 0; y < view.height; ++y)
    std::copy_n(view.row(y), 3 * view.width, image.pixels.data() + static_cast<ptrdiff_t>(3) * y * view.width);
  if (warning) *warning = decoder.warning();
  return image;
}

TEST(OddImages, LongestSidesDecode) {
  for (const auto& [width, height] : {std::pair{65500, 8}, {8, 65500}}) {
    Image image(width, height);
    const int longest = std::max(width, height);
    for (int i = 0; i < width * height; ++i) {
      const int along = width > height ? i % width : i / width;
      std::fill_n(image.pixels.data() + static_cast<ptrdiff_t>(3) * i, 3, static_cast<uint8_t>(255 * along / longest));
    }
    std::string warning;
    const Image result = decoded(encode_jpeg(image.view()), &warning);
    ASSERT_EQ(result.width, width);
    ASSERT_EQ(result.height, height);
    EXPECT_EQ(warning, "");
    int largest = 0;
    for (size_t i = 0; i < size_t{3} * 8 * 65500; ++i)
      largest = std::max(largest, std::abs(result.pixels[i] - image.pixels[i]));
    EXPECT_LE(largest, 3);
  }
}

TEST(OddImages, TrailingBytesAreNoDamage) {
  const Bytes bytes = encode_jpeg(draw_image(3, 10, 40, 1, 2).view());
  Bytes longer = bytes;
  for (int i = 0; i < 1000; ++i) longer.push_back(static_cast<std::byte>(i * 37));
  std::string warning;
  EXPECT_EQ(decoded(longer, &warning).pixels, decoded(bytes).pixels);
  EXPECT_EQ(warning, "");
}

// As in TensorFlow: pixels are not rotated.
TEST(OddImages, ExifOrientationIsIgnoredByDefault) {
  const Bytes bytes = encode_jpeg(draw_image(3, 10, 40, 1, 2).view());
  constexpr unsigned char kTurned[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0,
                                       0,    0,    1, 0,  // one entry: orientation, short, 6 (a quarter turn)
                                       0x12, 1,    3, 0,  1,   0,   0,   0,   6, 0, 0,   0,   0,  0, 0, 0};
  static_assert(sizeof kTurned == 36);
  Bytes turned(bytes.begin(), bytes.begin() + 2);
  for (unsigned char byte : kTurned) turned.push_back(static_cast<std::byte>(byte));
  turned.insert(turned.end(), bytes.begin() + 2, bytes.end());
  std::string warning;
  EXPECT_EQ(decoded(turned, &warning).pixels, decoded(bytes).pixels);
  EXPECT_EQ(warning, "");
}

// Truncated at any length: a damaged image or an Error, and a usable decoder afterwards.
TEST(OddImages, TruncationIsReportedOrRejected) {
  ImageDecoder decoder;
  for (const bool progressive : {false, true}) {
    const Bytes bytes = encode_jpeg(draw_image(3, 10, 200, 1, 2).view(), {.progressive = progressive});
    int noted = 0, refused = 0;
    for (size_t percent = 1; percent < 100; ++percent) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bytes.size() * percent / 100));
      try {
        decoder.open(cut);
        decoder.decode();
        EXPECT_NE(decoder.warning(), "") << percent << " % of it";
        ++noted;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::data);
        ++refused;
      }
    }
    EXPECT_GT(noted, 50);
    EXPECT_GT(refused, 0);
    decoder.open(bytes);
    decoder.decode();
    EXPECT_EQ(decoder.warning(), "");
  }
}

}  // namespace
}  // namespace dtrain::data
