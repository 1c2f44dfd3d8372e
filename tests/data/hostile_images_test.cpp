// Decompression bombs: small files that would take much memory or many passes.
#include <sys/resource.h>
#include <zlib.h>

#include <cstring>

#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"
#include "tests/checksums.h"
#include "tests/data/noise.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

std::string packed_text(size_t size) {
  const std::string text(size, 'x');
  uLongf bytes = compressBound(size);
  std::string packed(bytes, '\0');
  EXPECT_EQ(
      compress(reinterpret_cast<Bytef*>(packed.data()), &bytes, reinterpret_cast<const Bytef*>(text.data()), size),
      Z_OK);
  packed.resize(bytes);
  return packed;
}

std::string chunk(const std::string& type, const std::string& body) {
  const uint32_t length = __builtin_bswap32(static_cast<uint32_t>(body.size()));
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += type + body;
  const uint32_t crc = __builtin_bswap32(crc32(bytes.data() + 4, type.size() + body.size()));
  return bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

// Must run first: an earlier memory peak would hide a lower one.
TEST(HostileImages, PngTextIsNotDecompressed) {
  constexpr size_t kHeader = 33;  // the signature and IHDR
  const Image image = noise(37, 21, 3);
  const std::vector<std::byte> plain = encode_png(image.view());
  const std::string text = packed_text(7 << 20), profile = packed_text(3 << 20);
  std::string chunks = chunk("iCCP", std::string("profile\0\0", 9) + profile);
  for (int i = 0; i < 40; ++i) {
    chunks += chunk("zTXt", concat("key ", i) + std::string(2, '\0') + text);
    chunks += chunk("iTXt", concat("key ", i) + std::string("\0\1\0\0\0", 5) + text);
  }
  std::vector<std::byte> bytes(plain.begin(), plain.begin() + kHeader);
  for (char c : chunks) bytes.push_back(static_cast<std::byte>(c));
  bytes.insert(bytes.end(), plain.begin() + kHeader, plain.end());

  const int64_t before = peak_memory();
  ImageDecoder decoder;
  decoder.open(bytes);
  const ImageView view = decoder.decode();
  EXPECT_LT(peak_memory() - before, 100 << 20) << "all of it unpacked is 560 MiB";
  ASSERT_EQ(view.width, 37);
  for (int y = 0; y < view.height; ++y) EXPECT_EQ(std::memcmp(view.row(y), image.view().row(y), 3 * 37), 0) << y;
}

// Progressive JPEG of `side` x `side` uniform pixels whose last scan is repeated up to `scans`.
std::vector<std::byte> flat_jpeg(int side, int scans) {
  constexpr int kUsual = 10;
  const std::vector<std::byte> bytes = encode_jpeg(Image(side, side).view(), {.progressive = true});
  const auto end = bytes.end() - 2;
  auto scan = end;
  while (scan[0] != std::byte{0xFF} || scan[1] != std::byte{0xDA}) --scan;
  std::vector<std::byte> repeated(bytes.begin(), end);
  for (int i = kUsual; i < scans; ++i) repeated.insert(repeated.end(), scan, end);
  repeated.insert(repeated.end(), end, bytes.end());
  return repeated;
}

TEST(HostileImages, ScansAreLimitedByPixels) {
  constexpr int kSide = 4000, kMost = 125;  // 2,000,000,000 pixels in all
  ImageDecoder decoder;
  const std::vector<std::byte> most = flat_jpeg(kSide, kMost), more = flat_jpeg(kSide, kMost + 1);
  decoder.open(most);
  decoder.decode();
  for (const Window& window : {Window{0, 0, kSide, kSide}, {8, 8, 16, 16}}) {
    decoder.open(more);
    EXPECT_FALSE(decoder.suits_hardware()) << "no other decoder may be given what this one refuses";
    expect_error([&] { decoder.decode(window); }, Fault::data, "more than 125 scans of 4000x4000 pixels");
  }
  const std::vector<std::byte> small = flat_jpeg(100, kMost + 1);
  decoder.open(small);
  decoder.decode();
}

}  // namespace
}  // namespace dtrain::data
