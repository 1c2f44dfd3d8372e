// Damage of JPEGs that costs pixels, and warnings that do not.
#include <vector>

#include "data/jpeg.h"
#include "data/synthetic.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

TEST(JpegDamage, IsToldFromWarningsThatCostNoPixels) {
  const std::vector<std::byte> bytes = encode_jpeg(draw_image(1, 10, 120, 3, 4).view());
  ImageDecoder decoder;
  std::vector<std::byte> odd = bytes;
  odd.insert(odd.end() - 2, 20, std::byte{7});
  decoder.open(odd);
  decoder.decode();
  EXPECT_NE(decoder.warning().find("extraneous bytes before marker"), std::string::npos) << decoder.warning();
  EXPECT_EQ(decoder.damage(), "");
  std::vector<std::byte> corrupt = bytes;
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 40; ++i) corrupt[i] = std::byte{0xA5};
  decoder.open(corrupt);
  decoder.decode();
  EXPECT_NE(decoder.warning(), "");
  // A file that ends too early shows it in any window, also in one above the rows that are missing.
  const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bytes.size() * 9 / 10));
  decoder.open(cut);
  decoder.decode({0, 0, 16, 16});
  EXPECT_EQ(decoder.damage(), "Premature end of JPEG file");
  EXPECT_EQ(decoder.warning(), decoder.damage());
  decoder.open(bytes);
  decoder.decode({0, 0, 16, 16});
  EXPECT_EQ(decoder.damage(), "");
}

}  // namespace
}  // namespace dtrain::data
