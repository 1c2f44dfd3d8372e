// Baseline JPEG decoder against libjpeg-turbo: pixels, warnings and errors of valid and damaged files. DTRAIN_MUTATIONS
// sets the number of damaged ones, for long runs.
#include <cstdio>
// jpeglib.h needs FILE.
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdlib>
#include <deque>

#include "dtrain/core/rng.h"
#include "dtrain/data/jpeg.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> warning, error;
};

jpeg_error_mgr* install(Errors& errors) {
  jpeg_std_error(&errors.base);
  errors.warning[0] = errors.error[0] = '\0';
  errors.base.error_exit = [](j_common_ptr codec) {
    auto& e = *reinterpret_cast<Errors*>(codec->err);
    codec->err->format_message(codec, e.error.data());
    std::longjmp(e.jump, 1);
  };
  errors.base.emit_message = [](j_common_ptr codec, int level) {
    if (level < 0 && codec->err->num_warnings++ == 0)
      codec->err->format_message(codec, reinterpret_cast<Errors*>(codec->err)->warning.data());
  };
  return &errors.base;
}

// Reference result of libjpeg-turbo: the whole image, or an error.
struct Reference {
  Image image;
  std::string warning, error;
};

void decode_with_libjpeg(jpeg_decompress_struct& codec, Errors& errors, const std::string& bytes,
                         const DecodeOptions& options, Reference& reference) {
  if (setjmp(errors.jump) == 0) {
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&codec, TRUE);
    codec.out_color_space = JCS_RGB;
    codec.dct_method = options.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
    codec.do_fancy_upsampling = options.fancy_upsampling ? TRUE : FALSE;
    jpeg_start_decompress(&codec);
    reference.image = Image(static_cast<int>(codec.output_width), static_cast<int>(codec.output_height));
    while (codec.output_scanline < codec.output_height) {
      JSAMPROW row = reference.image.pixels.data() + size_t{3} * codec.output_width * codec.output_scanline;
      jpeg_read_scanlines(&codec, &row, 1);
    }
    jpeg_finish_decompress(&codec);
  }
  jpeg_destroy_decompress(&codec);
}

Reference libjpeg(const std::string& bytes, const DecodeOptions& options) {
  Reference reference;
  jpeg_decompress_struct codec{};
  Errors errors;
  codec.err = install(errors);
  decode_with_libjpeg(codec, errors, bytes, options, reference);
  reference.warning = errors.warning.data();
  reference.error = errors.error.data();
  return reference;
}

struct Encoding {
  int quality = 90;
  std::array<std::array<int, 2>, 3> factors{{{2, 2}, {1, 1}, {1, 1}}};
  unsigned restart_interval = 0;  // in MCUs
  bool optimize = false, grey = false;
};

void encode_with_libjpeg(jpeg_compress_struct& codec, Errors& errors, const Image& image, const Encoding& how,
                         unsigned char*& bytes, unsigned long& size) {
  if (setjmp(errors.jump) == 0) {
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &bytes, &size);
    codec.image_width = static_cast<JDIMENSION>(image.width);
    codec.image_height = static_cast<JDIMENSION>(image.height);
    codec.input_components = 3;
    codec.in_color_space = JCS_RGB;
    jpeg_set_defaults(&codec);
    jpeg_set_quality(&codec, how.quality, TRUE);
    if (how.grey) jpeg_set_colorspace(&codec, JCS_GRAYSCALE);
    for (int i = 0; i < codec.num_components; ++i) {
      codec.comp_info[i].h_samp_factor = how.factors[static_cast<size_t>(i)][0];
      codec.comp_info[i].v_samp_factor = how.factors[static_cast<size_t>(i)][1];
    }
    codec.restart_interval = how.restart_interval;
    codec.optimize_coding = how.optimize ? TRUE : FALSE;
    jpeg_start_compress(&codec, TRUE);
    for (int y = 0; y < image.height; ++y) {
      auto* row = const_cast<JSAMPROW>(image.view().row(y));
      jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
  }
  jpeg_destroy_compress(&codec);
}

std::string encode(const Image& image, const Encoding& how) {
  jpeg_compress_struct codec{};
  Errors errors;
  codec.err = install(errors);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  encode_with_libjpeg(codec, errors, image, how, bytes, size);
  EXPECT_STREQ(errors.error.data(), "");
  std::string text(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return text;
}

// Smooth colours, hard edges and noise; `wild`: black and white noise only.
Image picture(int width, int height, bool wild, RandomStream& random) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const int smooth = 60 + (x * (c + 1) + y * 2) % 120 + ((x / 9 + y / 7 + c) % 3 == 0 ? 60 : 0);
        const int value = wild ? 255 * static_cast<int>(random.below(2)) : smooth + static_cast<int>(random.below(12));
        image.pixels[static_cast<size_t>(3 * (y * width + x) + c)] = static_cast<uint8_t>(value);
      }
  return image;
}

Window random_window(int width, int height, RandomStream& random) {
  const auto below = [&](int bound) { return static_cast<int>(random.below(static_cast<uint32_t>(bound))); };
  Window window{0, 0, 1 + below(width), 1 + below(height)};
  window.x = below(width - window.width + 1);
  window.y = below(height - window.height + 1);
  if (below(4) == 0) window.x = width - window.width;
  if (below(4) == 0) window.y = height - window.height;
  return window;
}

bool equal(const ImageView& part, const Image& whole, const Window& window) {
  for (int y = 0; y < window.height; ++y)
    if (!std::equal(part.row(y), part.row(y) + 3 * window.width, whole.view().row(window.y + y) + 3 * window.x))
      return false;
  return part.width == window.width && part.height == window.height;
}

const std::array<DecodeOptions, 4> kOptions{
    {{}, {.fancy_upsampling = false}, {.fast_dct = true}, {.fast_dct = true, .fancy_upsampling = false}}};

class Comparison {
 public:
  explicit Comparison(const DecodeOptions& options) : options_(options), decoder_(options) {}

  // Decodes all of `bytes` and `windows` windows. Returns whether the baseline decoder handled all.
  bool check(const std::string& bytes, int windows, RandomStream& random, const std::string& what) {
    // Exact size on the heap, for AddressSanitizer.
    const std::vector<std::byte> encoded(std::as_bytes(std::span(bytes)).begin(),
                                         std::as_bytes(std::span(bytes)).end());
    ImageInfo info;
    std::string error;
    bool ours = false;
    try {
      info = decoder_.open(encoded);
    } catch (const Error&) {
      return false;  // by libjpeg
    }
    if (info.components == 4 || info.progressive) return false;
    const Reference expected = libjpeg(bytes, options_);
    const Window all{0, 0, info.width, info.height};
    try {
      const ImageView view = decoder_.decode(all);
      ours = !decoder_.used_libjpeg();
      EXPECT_EQ(expected.error, "") << what;
      EXPECT_EQ(decoder_.warning(), expected.warning) << what;
      EXPECT_TRUE(equal(view, expected.image, all)) << what;
    } catch (const Error& refused) {
      EXPECT_NE(std::string(refused.what()).find(expected.error), std::string::npos) << what << ": " << refused.what();
      EXPECT_NE(expected.error, "") << what;
    }
    for (int i = 0; i < windows && expected.error.empty(); ++i) {
      const Window window = random_window(info.width, info.height, random);
      decoder_.open(encoded);
      const ImageView part = decoder_.decode(window);
      // In a damaged image, windows differ where libjpeg-turbo resynchronises in the middle of a row.
      if (!expected.warning.empty() && decoder_.used_libjpeg()) continue;
      EXPECT_TRUE(equal(part, expected.image, window))
          << what << ", window " << window.width << "x" << window.height << " at " << window.x << "," << window.y;
    }
    return ours;
  }

 private:
  DecodeOptions options_;
  JpegDecoder decoder_;
};

uint64_t mutations(uint64_t otherwise) {
  const char* text = std::getenv("DTRAIN_MUTATIONS");
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(JpegBaseline, SyntheticImages) {
  constexpr std::array<std::array<std::array<int, 2>, 3>, 7> samplings{{{{{1, 1}, {1, 1}, {1, 1}}},
                                                                        {{{2, 1}, {1, 1}, {1, 1}}},
                                                                        {{{1, 2}, {1, 1}, {1, 1}}},
                                                                        {{{2, 2}, {1, 1}, {1, 1}}},
                                                                        {{{2, 2}, {2, 1}, {1, 2}}},
                                                                        {{{2, 2}, {1, 2}, {2, 2}}},
                                                                        {{{2, 1}, {2, 1}, {2, 1}}}}};
  RandomStream random(1, 0);
  std::deque<Comparison> comparisons(kOptions.begin(), kOptions.end());
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 3}, {5, 4}, {16, 16}, {33, 17}, {17, 35}, {70, 50}})
    for (const auto& factors : samplings)
      for (const int quality : {1, 40, 90, 100})
        for (const bool grey : {false, true}) {
          const Encoding how{.quality = quality,
                             .factors = factors,
                             .restart_interval = random.below(2) ? random.below(9) : 0,
                             .optimize = random.below(2) == 0,
                             .grey = grey};
          const std::string bytes = encode(picture(width, height, random.below(3) == 0, random), how);
          const std::string what =
              concat(width, "x", height, " quality ", quality, " factors ", factors[0][0], factors[0][1], factors[1][0],
                     factors[1][1], factors[2][0], factors[2][1], " grey ", grey, " restart ", how.restart_interval);
          for (Comparison& comparison : comparisons) EXPECT_TRUE(comparison.check(bytes, 6, random, what)) << what;
        }
}

TEST(JpegBaseline, Corpus) {
  const fs::path folder = test_data("jpeg_corner");
  if (!fs::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  RandomStream random(2, 0);
  int files = 0, ours = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.file_size() > 500000) continue;
    const std::string bytes = read_file(entry.path().string());
    for (const DecodeOptions& options : kOptions)
      ours += Comparison(options).check(bytes, 3, random, entry.path().string());
    ++files;
  }
  EXPECT_GT(files, 200);
  EXPECT_GT(ours, 4 * 20);
}

TEST(JpegBaseline, Photographs) {
  const fs::path folder = test_data("imagenet_sample");
  if (!fs::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  RandomStream random(3, 0);
  int files = 0, ours = 0;
  std::deque<Comparison> comparisons(kOptions.begin(), kOptions.end());
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".JPEG" || entry.file_size() > 150000) continue;
    Comparison& comparison = comparisons[static_cast<size_t>(files++ % 4)];
    ours += comparison.check(read_file(entry.path().string()), 2, random, entry.path().string());
  }
  EXPECT_GT(files, 100);
  EXPECT_GT(ours, files * 9 / 10);
}

TEST(JpegBaseline, DamagedImages) {
  RandomStream random(4, 0);
  std::vector<std::string> seeds;
  for (const unsigned restart_interval : {0, 0, 1, 4})
    for (const bool grey : {false, true})
      for (const int luma : {1, 2})
        seeds.push_back(encode(picture(50, 40, false, random), {.quality = 30 + 60 * (luma - 1),
                                                                .factors = {{{luma, luma}, {1, 1}, {1, 1}}},
                                                                .restart_interval = restart_interval,
                                                                .optimize = luma == 1,
                                                                .grey = grey}));
  std::deque<Comparison> comparisons;
  for (DecodeOptions options : kOptions) {
    options.limits.max_pixels = 1 << 16;
    comparisons.emplace_back(options);
  }
  uint64_t ours = 0;
  const uint64_t rounds = mutations(4000);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string bytes = seeds[random.below(static_cast<uint32_t>(seeds.size()))];
    for (uint32_t changes = random.below(3); changes > 0; --changes) {
      const size_t at = random.below(static_cast<uint32_t>(bytes.size()));
      switch (random.below(5)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.erase(at, 1 + random.below(3));
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(random.below(2) ? 0xFF : random.below(256)));
          break;
        case 3:  // valid before a marker, invalid before a zero
          if (const size_t next = bytes.find('\xFF', at); next != std::string::npos) bytes.insert(next, 1, '\xFF');
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
      }
    }
    if (random.below(8) == 0) bytes.resize(random.below(static_cast<uint32_t>(bytes.size() + 1)));
    ours += comparisons[round % 4].check(bytes, 2, random, concat("round ", round));
  }
  EXPECT_GT(ours, rounds / 10);
  EXPECT_LT(ours, rounds);
}

}  // namespace
}  // namespace dtrain::data
