// Deferred decoding: eligible images, resampling filters, and the loader's fallback to the host.
#include <set>

#include "data/shards.h"
#include "dtrain/data/imagenet.h"
#include "dtrain/data/loader.h"
#include "dtrain/data/png.h"
#include "tests/files.h"
#include "tests/jpegs.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

using Bytes = std::vector<std::byte>;

bool suits(const Bytes& encoded) {
  ImageDecoder decoder;
  decoder.open(encoded);
  return decoder.suits_hardware();
}

TEST(SuitsHardware, BaselineWithUsualSubsampling) {
  for (const Bytes& jpeg : usual_jpegs()) EXPECT_TRUE(suits(jpeg));
  EXPECT_FALSE(suits(smooth_jpeg(40, 30, 0, {.sampling = Sampling::s411})));
  EXPECT_FALSE(suits(smooth_jpeg(40, 30, 0, {.progressive = true})));
  EXPECT_FALSE(suits(encode_png(smooth_picture(40, 30, 0).view())));
}

TEST(SuitsHardware, ValidMarkers) {
  const Bytes sound = smooth_jpeg(40, 30, 0, {});
  Bytes longer = sound;
  longer.resize(sound.size() + 9, std::byte{1});  // cameras append data
  EXPECT_TRUE(suits(longer));
  Bytes cut = sound;
  cut.resize(sound.size() - 2);
  EXPECT_FALSE(suits(cut));
  cut.resize(sound.size() - 20);
  EXPECT_FALSE(suits(cut));
  for (const uint8_t marker : {0xD0, 0xD9, 0xC4, 0x01}) {
    Bytes marked = sound;
    marked[sound.size() - 20] = std::byte{0xFF};
    marked[sound.size() - 19] = std::byte{marker};
    EXPECT_EQ(suits(marked), marker == 0xD9) << int{marker};  // a premature end, visible only to a full decode
  }
}

TEST(SuitsHardware, ValidRestartMarkers) {
  const std::filesystem::path folder = test_data("jpeg_corner");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: " << folder;
  int with_restarts = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename().string().find("restart") == std::string::npos) continue;
    const std::string text = read_file(entry.path().string());
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    Bytes bytes(first, first + text.size());
    if (!suits(bytes)) continue;
    ++with_restarts;
    for (size_t i = bytes.size() - 2; i > 0; --i) {
      if (bytes[i] != std::byte{0xFF} || (bytes[i + 1] & std::byte{0xF8}) != std::byte{0xD0}) continue;
      bytes[i + 1] ^= std::byte{1};
      break;
    }
    EXPECT_FALSE(suits(bytes)) << entry.path();
  }
  EXPECT_GT(with_restarts, 0);
}

// Filters applied to the whole image give the host's sample: same crop, same flip.
TEST(Defer, FiltersReproduceTheHostsSample) {
  for (const PreprocessOptions& options : deferrable_presets(21, 34)) {
    const auto jpegs = usual_jpegs();
    const auto images = deferred(jpegs, options, std::make_shared<HostAllocator>());
    const size_t size = 3 * 21 * 34;
    std::vector<float> f32(jpegs.size() * size), row_f32;
    std::vector<uint8_t> u8(jpegs.size() * size), row_u8;
    for (size_t i = 0; i < images.size(); ++i) {
      ASSERT_EQ(Bytes(images[i].jpeg.begin(), images[i].jpeg.end()), jpegs[i]);
      ImageDecoder decoder(decode_options(options));
      const ImageInfo info = decoder.open(jpegs[i]);
      EXPECT_EQ(images[i].width, info.width);
      EXPECT_EQ(images[i].height, info.height);
      const ImageView whole = decoder.decode();
      if (pixel_type(options.preset) == DType::u8)
        resample(whole, images[i].to_u8.x, images[i].to_u8.y, row_u8, u8.data() + i * size);
      else
        resample(whole, images[i].to_f32.x, images[i].to_f32.y, row_f32, f32.data() + i * size);
    }
    if (pixel_type(options.preset) == DType::u8)
      EXPECT_EQ(u8, samples_by_host<uint8_t>(jpegs, options));
    else
      EXPECT_EQ(f32, samples_by_host<float>(jpegs, options));
  }
}

TEST(Defer, OtherImagesAndColourOpsUseTheHost) {
  const PreprocessOptions options{.height = 8, .width = 8};
  const Bytes png = encode_png(smooth_picture(40, 30, 0).view());
  const auto images = deferred({usual_jpegs()[0], png}, options, std::make_shared<HostAllocator>());
  EXPECT_FALSE(images[0].jpeg.empty());
  EXPECT_TRUE(images[1].jpeg.empty());
  EXPECT_THROW(deferred({Bytes(9)}, options, std::make_shared<HostAllocator>()), Error);
  for (const PreprocessOptions& host_only :
       {PreprocessOptions{.distort_color = true}, PreprocessOptions{.preset = Preset::aws}})
    EXPECT_TRUE(deferred({usual_jpegs()[0]}, host_only, std::make_shared<HostAllocator>())[0].jpeg.empty());
}

// Data set of good images, PNGs and images that the host rejects: sample i has label i.
class DeferringLoader : public testing::Test {
 protected:
  static constexpr int kPng = 2, kBad = 5, kRecords = 8;

  void SetUp() override {
    const auto make = [](uint64_t record) {
      const Image picture = smooth_picture(30, 20, static_cast<int>(record));
      Bytes encoded = record == kPng ? encode_png(picture.view()) : encode_jpeg(picture.view());
      if (record == kBad) encoded.resize(20);
      return image_example(
          {.encoded = encoded, .format = "JPEG", .width = 30, .height = 20, .label = static_cast<int64_t>(record)});
    };
    write_shards({.directory = directory_.path().string(), .threads = 1},
                 {{.name = "train", .count = kRecords, .make = make}});
    const PreprocessOptions preset{.preset = Preset::torchvision, .height = 6, .width = 7};
    dataset_ = std::make_shared<ImagenetDataset>(
        ImagenetOptions{.directory = directory_.path().string(), .classes = kRecords}, make_preprocess(preset));
  }

  LoaderOptions options() const {
    return {.batch = 4, .seed = 3, .workers = 2, .skip_bad_records = true, .defer_decoding = true};
  }
  static std::vector<uint8_t> row_of(const Batch& batch, int64_t row) {
    const auto pixels = batch["images"].slice(row, row + 1).span<uint8_t>();
    return {pixels.begin(), pixels.end()};
  }

  TempDirectory directory_;
  std::shared_ptr<ImagenetDataset> dataset_;
};

// Whatever the device rejects, samples, labels and pixels equal those of a loader without deferral.
TEST_F(DeferringLoader, FallsBackToTheHost) {
  LoaderOptions on_host = options();
  on_host.defer_decoding = false;
  Loader host(dataset_, on_host), both(dataset_, options());
  int deferred_rows = 0;
  for (int b = 0; b < 6; ++b) {
    const Batch& expected = *host.next();
    const Batch& batch = *both.next();
    EXPECT_TRUE(expected.encoded.empty());
    ASSERT_EQ(batch.encoded.size(), 4u);
    for (int64_t row = 0; row < 4; ++row) {
      const EncodedImage& image = batch.encoded[static_cast<size_t>(row)];
      EXPECT_EQ(image.jpeg.empty(), batch["labels"].data<int32_t>()[row] == kPng);
      if (!image.jpeg.empty()) {
        ++deferred_rows;
        both.decode(row);
      }
      EXPECT_TRUE(image.jpeg.empty());
      EXPECT_EQ(row_of(batch, row), row_of(expected, row));
    }
    EXPECT_EQ(batch.samples, expected.samples);
    EXPECT_EQ(batch["labels"].data<int32_t>()[1], expected["labels"].data<int32_t>()[1]);
    EXPECT_EQ(batch.cursor, expected.cursor);
  }
  EXPECT_GT(deferred_rows, 12);
  EXPECT_EQ(both.stats().bad_records, host.stats().bad_records);
  EXPECT_EQ(both.stats().bad_records, 1u);
  EXPECT_EQ(both.stats().records, 24u);
  EXPECT_EQ(both.stats().deferred, 0u);
}

TEST_F(DeferringLoader, CountsDeferredImages) {
  LoaderOptions once = options();
  once.training = false;
  Loader loader(dataset_, once);
  std::set<int32_t> left;
  while (const Batch* batch = loader.next())
    for (int64_t row = 0; row < 4; ++row)
      if (!batch->encoded[static_cast<size_t>(row)].jpeg.empty()) left.insert((*batch)["labels"].data<int32_t>()[row]);
  EXPECT_EQ(left, (std::set<int32_t>{0, 1, 3, 4, 6, 7}));
  EXPECT_EQ(loader.stats().deferred, 6u);
  EXPECT_EQ(loader.stats().records, 7u);
}

TEST_F(DeferringLoader, ReportsBadRecordsAsTheHostDoes) {
  LoaderOptions strict = options();
  strict.training = strict.skip_bad_records = false;
  Loader loader(dataset_, strict);
  EXPECT_NE(loader.next(), nullptr);
  expect_error([&] { loader.next(); }, Fault::data, "record 5 at byte ");
  expect_error([&] { Loader(dataset_, strict).decode(0); }, Fault::config, "row 0 of no batch");
}

}  // namespace
}  // namespace dtrain::data
