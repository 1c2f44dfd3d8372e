// JPEG decoding and encoding: a corpus of corner cases against djpeg, windows against whole images, limits, round
// trips.
#include "dtrain/data/jpeg.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "dtrain/core/error.h"
#include "dtrain/core/rng.h"
#include "dtrain/data/png.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

struct Expected {
  std::string file;
  int djpeg = 0;  // exit code: 0 valid, 2 warnings, 1 rejected
};

// Splits a CSV line; quoted fields may contain commas.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

std::vector<Expected> expectations(const fs::path& folder) {
  std::ifstream in(folder / "expected.csv");
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = fields(line);
  const auto column = std::find(header.begin(), header.end(), "djpeg_rc") - header.begin();
  std::vector<Expected> all;
  while (std::getline(in, line)) {
    const std::vector<std::string> row = fields(line);
    all.push_back({row[0], std::stoi(row[static_cast<size_t>(column)])});
  }
  return all;
}

// Image with edges, gradients and noise in all three channels.
Image picture(int width, int height, uint64_t seed = 1) {
  Image image(width, height);
  RandomStream random(seed, 0);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        image.pixels[static_cast<size_t>(3 * (y * width + x) + c)] = static_cast<uint8_t>(
            ((x / 7 + y / 5 + c) % 2 ? 180 : 40) + 30 * std::sin(0.05 * (x + c * y)) + random.below(20));
  return image;
}

Image copy(const ImageView& view) {
  Image image(view.width, view.height);
  for (int y = 0; y < view.height; ++y)
    std::copy_n(view.row(y), 3 * view.width, image.pixels.data() + static_cast<ptrdiff_t>(3) * y * view.width);
  return image;
}

// Maximum absolute difference of two images of equal size.
int distance(const ImageView& a, const ImageView& b) {
  int largest = 0;
  for (int y = 0; y < a.height; ++y)
    for (int i = 0; i < 3 * a.width; ++i) largest = std::max(largest, std::abs(a.row(y)[i] - b.row(y)[i]));
  return largest;
}

TEST(Jpeg, CornerCasesMatchDjpeg) {
  const fs::path folder = test_data("jpeg_corner");
  if (!fs::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  JpegDecoder decoder;
  int files = 0;
  for (const Expected& expected : expectations(folder)) {
    const std::vector<std::byte> bytes = read_file(folder / expected.file);
    int outcome = 0;
    std::string said;
    try {
      const ImageInfo info = decoder.open(bytes);
      decoder.decode({0, 0, info.width, info.height});
      said = decoder.warning();
      if (!said.empty()) outcome = 2;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      said = error.what();
      outcome = 1;
    }
    EXPECT_EQ(outcome, expected.djpeg) << expected.file << ": " << said;
    ++files;
  }
  EXPECT_EQ(files, 229);
}

TEST(Jpeg, PixelsEqualTheReference) {
  const fs::path folder = test_data("jpeg_corner");
  if (!fs::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  ImageDecoder jpeg;
  PngDecoder png;
  int compared = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "jpeg-decoder/reftest/images")) {
    fs::path reference = entry.path();
    if (entry.path().extension() != ".jpg" || !fs::exists(reference.replace_extension(".png"))) continue;
    const std::vector<std::byte> bytes = read_file(entry.path()), reference_bytes = read_file(reference);
    ImageView ours;
    try {
      jpeg.open(bytes);
      ours = jpeg.decode();
    } catch (const Error&) {
      continue;  // djpeg rejects this kind, too: see above
    }
    const ImageInfo info = png.open(reference_bytes);
    const ImageView theirs = png.decode({0, 0, info.width, info.height});
    ASSERT_EQ(ours.width, theirs.width) << entry.path();
    ASSERT_EQ(ours.height, theirs.height) << entry.path();
    // mjpeg.png comes from image-rs' jpeg-decoder 0.1.13, bit for bit. It rounds all halves of 4:2:2 chroma up, libjpeg
    // alternately: 123 samples differ by 3 levels.
    EXPECT_LE(distance(ours, theirs), entry.path().stem() == "mjpeg" ? 3 : 2) << entry.path();
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

// Compares random windows of `bytes`, including all edges, with the whole image.
void expect_windows_equal(const std::vector<std::byte>& bytes, const DecodeOptions& options, const std::string& what) {
  ImageDecoder decoder(options);
  const ImageInfo info = decoder.open(bytes);
  const Image whole = copy(decoder.decode());
  RandomStream random(7, 0);
  for (int i = 0; i < 24; ++i) {
    Window window;
    window.width = 1 + static_cast<int>(random.below(static_cast<uint32_t>(info.width)));
    window.height = 1 + static_cast<int>(random.below(static_cast<uint32_t>(info.height)));
    window.x = static_cast<int>(random.below(static_cast<uint32_t>(info.width - window.width + 1)));
    window.y = static_cast<int>(random.below(static_cast<uint32_t>(info.height - window.height + 1)));
    if (i % 4 == 1) window.x = info.width - window.width;
    if (i % 4 == 2) window.y = info.height - window.height;
    if (i % 4 == 3) window.width = std::min(window.width, 3), window.height = std::min(window.height, 3);
    decoder.open(bytes);
    const ImageView part = decoder.decode(window);
    ImageView same = whole.view();
    same.pixels += window.y * same.stride + 3 * window.x;
    ASSERT_EQ(distance(part, same), 0) << what << " window " << window.width << "x" << window.height << " at "
                                       << window.x << "," << window.y;
  }
}

TEST(Jpeg, WindowsEqualTheWholeImage) {
  constexpr Sampling samplings[] = {Sampling::s444, Sampling::s422, Sampling::s420, Sampling::s440, Sampling::s411};
  for (const auto& [width, height] : {std::pair{131, 97}, {64, 64}, {17, 200}, {3, 5}, {1, 1}}) {
    const Image image = picture(width, height);
    for (const Sampling sampling : samplings)
      for (const bool progressive : {false, true})
        for (const bool grey : {false, true})
          for (const bool fast : {false, true}) {
            const std::vector<std::byte> bytes = encode_jpeg(image.view(), {85, sampling, progressive, grey});
            expect_windows_equal(bytes, {.fast_dct = fast, .fancy_upsampling = !fast},
                                 concat(width, "x", height, " sampling ", static_cast<int>(sampling), " progressive ",
                                        progressive, " grey ", grey, " fast ", fast));
          }
  }
}

TEST(Jpeg, WindowsOfTheCorpusEqualTheWholeImage) {
  const fs::path folder = test_data("jpeg_corner");
  if (!fs::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  for (const Expected& expected : expectations(folder)) {
    const fs::path path = folder / expected.file;
    if (expected.djpeg != 0 || fs::file_size(path) > 60000) continue;
    for (const bool fancy : {true, false})
      expect_windows_equal(read_file(path), {.fancy_upsampling = fancy}, expected.file);
  }
}

TEST(Jpeg, RoundTripPreservesTheImage) {
  Image image(40, 30);
  for (size_t i = 0; i < 40 * 30; ++i) {
    image.pixels[3 * i] = static_cast<uint8_t>(5 * (i % 40));
    image.pixels[3 * i + 1] = static_cast<uint8_t>(8 * (i / 40));
    image.pixels[3 * i + 2] = 90;
  }
  const std::vector<std::byte> bytes = encode_jpeg(image.view(), {.quality = 97, .sampling = Sampling::s444});
  ImageDecoder decoder;
  const ImageInfo info = decoder.open(bytes);
  EXPECT_EQ(info.format, ImageFormat::jpeg);
  EXPECT_EQ(info.width, 40);
  EXPECT_EQ(info.height, 30);
  EXPECT_EQ(info.components, 3);
  EXPECT_FALSE(info.progressive);
  EXPECT_LE(distance(decoder.decode(), image.view()), 5);
  EXPECT_TRUE(decoder.warning().empty());
}

// Changes the dimensions in a JPEG's frame header.
std::vector<std::byte> claim(std::vector<std::byte> bytes, int width, int height) {
  for (size_t i = 0; i + 9 < bytes.size(); ++i)
    if (bytes[i] == std::byte{0xFF} && (bytes[i + 1] == std::byte{0xC0} || bytes[i + 1] == std::byte{0xC2})) {
      bytes[i + 5] = static_cast<std::byte>(height >> 8);
      bytes[i + 6] = static_cast<std::byte>(height & 255);
      bytes[i + 7] = static_cast<std::byte>(width >> 8);
      bytes[i + 8] = static_cast<std::byte>(width & 255);
      return bytes;
    }
  ADD_FAILURE() << "no frame header";
  return bytes;
}

void expect_refused(ImageDecoder& decoder, const std::vector<std::byte>& bytes, const std::string& reason) {
  try {
    decoder.open(bytes);
    decoder.decode();
    ADD_FAILURE() << "decoded, where this was expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

TEST(Jpeg, BombsAreRejectedByHeader) {
  const Image image = picture(16, 16);
  ImageDecoder decoder;
  for (const bool progressive : {false, true}) {
    const std::vector<std::byte> bytes = encode_jpeg(image.view(), {.progressive = progressive});
    EXPECT_THROW(decoder.open(claim(bytes, 65500, 65500)), Error);
    EXPECT_THROW(decoder.open(claim(bytes, 65535, 65535)), Error);
    EXPECT_THROW(decoder.open(claim(bytes, 16, 65535)), Error);
    ImageDecoder narrow({.limits = {.max_side = 15}});
    EXPECT_THROW(narrow.open(bytes), Error);
  }
  expect_refused(decoder, claim(encode_jpeg(image.view()), 20000, 20000), "20000x20000");
}

TEST(Jpeg, ScansAreLimited) {
  const std::vector<std::byte> bytes = encode_jpeg(picture(16, 16).view(), {.progressive = true});
  // Repeats the last scan, the bytes between its marker and the end of the image.
  size_t scan = bytes.size() - 2;
  while (bytes[scan] != std::byte{0xFF} || bytes[scan + 1] != std::byte{0xDA}) --scan;
  std::vector<std::byte> bomb(bytes.begin(), bytes.end() - 2);
  for (int i = 0; i < 300; ++i) bomb.insert(bomb.end(), bytes.begin() + static_cast<ptrdiff_t>(scan), bytes.end() - 2);
  bomb.insert(bomb.end(), bytes.end() - 2, bytes.end());
  ImageDecoder decoder;
  expect_refused(decoder, bomb, "256 scans");
  ImageDecoder patient({.limits = {.max_scans = 400}});
  patient.open(bomb);
  patient.decode();
  decoder.open(bytes);  // the decoder is still usable
  decoder.decode();
  EXPECT_EQ(decoder.warning(), "");
}

TEST(Jpeg, TruncatedImagesDecodeWithDamage) {
  const Image image = picture(120, 90);
  ImageDecoder decoder;
  for (const bool progressive : {false, true}) {
    const std::vector<std::byte> bytes = encode_jpeg(image.view(), {.progressive = progressive});
    for (const size_t percent : {50, 99}) {
      std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bytes.size() * percent / 100));
      decoder.open(cut);
      decoder.decode();
      EXPECT_NE(decoder.warning(), "");
    }
    expect_refused(decoder, {bytes.begin(), bytes.begin() + 40}, "JPEG");
  }
  const std::vector<std::byte> bytes = encode_jpeg(image.view());
  decoder.open(bytes);
  decoder.decode();
  EXPECT_EQ(decoder.warning(), "") << "the note of the image before it is gone";
}

// `bytes` without its segments of one kind, of which there is at least one.
std::vector<std::byte> without(const std::vector<std::byte>& bytes, int marker) {
  std::vector<std::byte> left(bytes.begin(), bytes.begin() + 2);
  const auto byte = [&](size_t at) { return std::to_integer<int>(bytes[at]); };
  size_t at = 2;
  while (byte(at + 1) != 0xDA) {
    const size_t end = at + 2 + static_cast<size_t>(256 * byte(at + 2) + byte(at + 3));
    if (byte(at + 1) != marker)
      left.insert(left.end(), bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(end));
    at = end;
  }
  left.insert(left.end(), bytes.begin() + static_cast<ptrdiff_t>(at), bytes.end());
  EXPECT_LT(left.size(), bytes.size());
  return left;
}

TEST(Jpeg, TablesDoNotCarryOver) {
  constexpr int kQuantizers = 0xDB, kHuffman = 0xC4;
  const Image image = picture(40, 30);
  const std::vector<std::byte> bytes = encode_jpeg(image.view());
  const std::vector<std::byte> other = encode_jpeg(image.view(), {.quality = 20, .progressive = true});
  ImageDecoder decoder;
  decoder.open(bytes);
  const Image expected = copy(decoder.decode());
  decoder.open(other);
  decoder.decode();
  expect_refused(decoder, without(bytes, kQuantizers), "not defined");
  // As in MJPEG: libjpeg-turbo has built-in standard Huffman tables.
  const std::vector<std::byte> bare = without(bytes, kHuffman);
  decoder.open(bare);
  EXPECT_EQ(distance(decoder.decode(), expected.view()), 0);
}

TEST(Jpeg, MisuseIsRejected) {
  const std::vector<std::byte> bytes = encode_jpeg(picture(16, 16).view());
  ImageDecoder decoder;
  EXPECT_THROW(decoder.decode(), Error);
  decoder.open(bytes);
  EXPECT_THROW(decoder.decode({8, 0, 9, 1}), Error);
  EXPECT_THROW(decoder.decode({-1, 0, 4, 4}), Error);
  EXPECT_THROW(decoder.decode({0, 0, 0, 4}), Error);
  decoder.decode();
  EXPECT_THROW(decoder.decode(), Error) << "decoded twice";
}

TEST(Image, OtherFormatsAreNamed) {
  const auto said = [](std::string_view text) -> std::string {
    try {
      sniff_image(std::as_bytes(std::span(text.data(), text.size())));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(said("").find("empty"), std::string::npos);
  EXPECT_NE(said("\x01\x02\x03\x18"
                 "ftypheic....")
                .find("heic"),
            std::string::npos);
  EXPECT_NE(said("\xff").find("0xff"), std::string::npos);
}

TEST(Image, RandomDamageDecodesOrIsRejected) {
  const Image image = picture(48, 40);
  ImageDecoder decoder({.limits = {.max_pixels = 100'000}});
  RandomStream random(12, 0);
  int decoded = 0, refused = 0;
  int64_t touched = 0;
  for (const auto& bytes : {encode_jpeg(image.view()), encode_jpeg(image.view(), {.progressive = true}),
                            encode_jpeg(image.view(), {.grey = true}), encode_png(image.view())})
    for (int i = 0; i < 500; ++i) {
      std::vector<std::byte> damaged = bytes;
      for (uint32_t change = 0; change <= random.below(4); ++change)
        damaged[random.below(static_cast<uint32_t>(bytes.size()))] = static_cast<std::byte>(random.below(256));
      if (i % 5 == 0) damaged.resize(random.below(static_cast<uint32_t>(bytes.size())));
      try {
        const ImageInfo info = decoder.open(damaged);
        const ImageView view = decoder.decode(
            {info.width / 3, info.height / 3, info.width - info.width / 3, info.height - info.height / 3});
        for (int y = 0; y < view.height; ++y) touched += std::accumulate(view.row(y), view.row(y) + 3 * view.width, 0);
        ++decoded;
      } catch (const Error& error) {
        ASSERT_EQ(error.fault(), Fault::data) << error.what();
        ++refused;
      }
    }
  EXPECT_GT(touched, 0);
  EXPECT_GT(decoded, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace dtrain::data
