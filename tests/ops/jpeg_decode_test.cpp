// GPU JPEG decoding against the host's samples. nvJPEG's IDCT, upsampling and colour conversion round differently from
// libjpeg's: a few levels on smooth images, which the tolerance allows.
#include "dtrain/ops/jpeg_decode.h"

#include "tests/jpegs.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Jpegs = std::vector<std::vector<std::byte>>;

constexpr int kHeight = 19, kWidth = 22;
constexpr double kMean = 1.5, kMost = 12;  // levels

class JpegDecode : public testing::Test {
 protected:
  void SetUp() override {
    for (auto& context : devices())
      if (!context->is_cpu()) context_ = std::move(context);
    if (!context_) GTEST_SKIP() << "SKIPPED: no GPU";
    try {
      const GpuJpegDecoder decoder(*context_);
    } catch (const Error& error) {
      GTEST_SKIP() << "SKIPPED: " << error.what();
    }
    poison(*context_);
  }

  // All rows, initially -1: rejected images and rows without JPEG stay so.
  template <class T>
  std::vector<T> decode(const std::vector<EncodedImage>& images, std::vector<int64_t>* refused = nullptr,
                        const JpegDecodeOptions& options = {}) {
    const Shape shape{static_cast<int64_t>(images.size()), kHeight, kWidth, 3};
    const Tensor pixels =
        to_device(*context_, shape, std::vector<T>(static_cast<size_t>(shape.count()), static_cast<T>(-1)));
    context_->wait(Stream::copy, context_->record());
    GpuJpegDecoder decoder(*context_, options);
    const std::vector<int64_t> rows = decoder.decode(images, pixels);
    context_->wait(Stream::compute, context_->record(Stream::copy));
    if (refused) *refused = rows;
    return values_of<T>(*context_, pixels);
  }

  std::vector<EncodedImage> encoded(const Jpegs& jpegs, const data::PreprocessOptions& options) {
    return deferred(jpegs, options, context_->host_allocator());
  }

  template <class T>
  void expect_as_the_host(const Jpegs& jpegs, const data::PreprocessOptions& options) {
    const std::vector<T> host = samples_by_host<T>(jpegs, options);
    std::vector<int64_t> refused;
    const JpegDecodeOptions decoding{.fancy_upsampling = data::decode_options(options).fancy_upsampling};
    const std::vector<T> device = decode<T>(encoded(jpegs, options), &refused, decoding);
    EXPECT_EQ(refused, std::vector<int64_t>{});
    double sum = 0, most = 0;
    for (size_t i = 0; i < host.size(); ++i) {
      const double difference = std::abs(static_cast<double>(host[i]) - static_cast<double>(device[i]));
      sum += difference;
      most = std::max(most, difference);
    }
    EXPECT_LE(sum / static_cast<double>(host.size()), kMean);
    EXPECT_LE(most, kMost);
  }

  std::unique_ptr<Context> context_;
};

TEST_F(JpegDecode, MakesTheHostsSamples) {
  for (const data::PreprocessOptions& options : deferrable_presets(kHeight, kWidth)) {
    SCOPED_TRACE(concat("preset ", static_cast<int>(options.preset), ", resize ", static_cast<int>(options.resize),
                        options.training ? ", training" : ", evaluation"));
    if (data::pixel_type(options.preset) == DType::u8)
      expect_as_the_host<uint8_t>(usual_jpegs(), options);
    else
      expect_as_the_host<float>(usual_jpegs(), options);
  }
}

TEST_F(JpegDecode, GivesTheSameBitsInPartsAndAgain) {
  const data::PreprocessOptions options{.preset = data::Preset::torchvision, .height = kHeight, .width = kWidth};
  const std::vector<EncodedImage> images = encoded(usual_jpegs(), options);
  const std::vector<uint8_t> whole = decode<uint8_t>(images);
  std::vector<int64_t> refused;
  // Memory for one of the larger images at a time.
  EXPECT_EQ(decode<uint8_t>(images, &refused, {.memory = size_t{3} * 200 * 31 + 256}), whole);
  EXPECT_EQ(refused, std::vector<int64_t>{});

  // One decoder for several batches of different images.
  GpuJpegDecoder decoder(*context_);
  const Tensor pixels = context_->empty({static_cast<int64_t>(images.size()), kHeight, kWidth, 3}, DType::u8);
  const std::vector<EncodedImage> reversed(images.rbegin(), images.rend());
  for (const auto* batch : {&images, &reversed, &images}) EXPECT_TRUE(decoder.decode(*batch, pixels).empty());
  context_->wait(Stream::compute, context_->record(Stream::copy));
  EXPECT_EQ(values_of<uint8_t>(*context_, pixels), whole);
}

TEST_F(JpegDecode, LeavesOutWhatItCannotDecodeAndWhatHasNoJpeg) {
  const data::PreprocessOptions options{.preset = data::Preset::torchvision, .height = kHeight, .width = kWidth};
  Jpegs jpegs = usual_jpegs();
  std::vector<EncodedImage> images = encoded(jpegs, options);
  const std::vector<uint8_t> whole = decode<uint8_t>(images);
  const auto replace = [&](size_t row, const std::vector<std::byte>& bytes) {
    images[row].jpeg.assign(bytes.begin(), bytes.end());
  };
  images[0].jpeg.clear();
  replace(2, {});
  replace(3, smooth_jpeg(45, 38, 3, {.sampling = data::Sampling::s411, .progressive = true}));
  replace(4, smooth_jpeg(38, 29, 4, {.grey = true}));  // larger than announced
  replace(5, std::vector<std::byte>(100, std::byte{7}));
  std::vector<int64_t> refused;
  const std::vector<uint8_t> found = decode<uint8_t>(images, &refused);
  EXPECT_EQ(refused, (std::vector<int64_t>{3, 4, 5}));
  const size_t size = 3 * kHeight * kWidth;
  for (size_t row = 0; row < images.size(); ++row) {
    const bool left = row == 0 || (row >= 2 && row <= 5);
    for (size_t i = row * size; i < (row + 1) * size; ++i) ASSERT_EQ(found[i], left ? 255 : whole[i]) << "row " << row;
  }
}

TEST_F(JpegDecode, RefusesWhatTakesMoreThanItsMemory) {
  const data::PreprocessOptions options{.preset = data::Preset::torchvision, .height = kHeight, .width = kWidth};
  std::vector<int64_t> refused;
  decode<uint8_t>(encoded(usual_jpegs(), options), &refused, {.memory = size_t{3} * 64 * 48});
  EXPECT_EQ(refused, (std::vector<int64_t>{6}));
}

TEST_F(JpegDecode, ChecksWhatItIsGiven) {
  const data::PreprocessOptions options{.preset = data::Preset::torchvision, .height = kHeight, .width = kWidth};
  std::vector<EncodedImage> images = encoded(usual_jpegs(), options);
  GpuJpegDecoder decoder(*context_);
  const auto rows = static_cast<int64_t>(images.size());
  const auto into = [&](Shape shape, DType dtype) { decoder.decode(images, context_->empty(shape, dtype)); };
  expect_error([&] { into({rows - 1, kHeight, kWidth, 3}, DType::u8); }, Fault::config, "JPEG decode of 7 images");
  expect_error([&] { into({rows, kHeight, kWidth, 3}, DType::i32); }, Fault::config, "into i32");
  expect_error([&] { into({rows, kHeight, kWidth + 1, 3}, DType::u8); }, Fault::config, "filters that make 19x22");
  const Tensor elsewhere = make_cpu_context()->empty({rows, kHeight, kWidth, 3}, DType::u8);
  expect_error([&] { decoder.decode(images, elsewhere); }, Fault::config, "JPEG decode: a tensor on cpu");
  // u8 filters with f32 output.
  expect_error([&] { into({rows, kHeight, kWidth, 3}, DType::f32); }, Fault::config, "filters that make 0x0");
  images[1].to_u8.x.first[3] = images[1].width;
  expect_error([&] { into({rows, kHeight, kWidth, 3}, DType::u8); }, Fault::config, "of another image");
}

TEST(JpegDecodeOnACpu, IsRefused) {
  const auto context = make_cpu_context();
  expect_error([&] { GpuJpegDecoder decoder(*context); }, Fault::config, "JPEG decoding on a GPU: ");
}

}  // namespace
}  // namespace dtrain
