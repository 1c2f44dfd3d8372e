// With an nvJPEG that decodes as libjpeg does, GPU samples equal the host's bitwise; and misuse that the emulation
// detects.
#include "dtrain/ops/jpeg_decode.h"
#include "libdtrain/cuda/nvjpeg_interface.h"
#include "tests/emulation/emulation.h"
#include "tests/jpegs.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

template <class T>
std::vector<T> decode(Context& context, const std::vector<EncodedImage>& images,
                      const data::PreprocessOptions& options) {
  const Tensor pixels =
      context.empty({static_cast<int64_t>(images.size()), options.height, options.width, 3}, dtype_of<T>());
  GpuJpegDecoder decoder(context, {.fancy_upsampling = data::decode_options(options).fancy_upsampling});
  EXPECT_TRUE(decoder.decode(images, pixels).empty());
  context.wait(Stream::compute, context.record(Stream::copy));
  return values_of<T>(context, pixels);
}

TEST(EmulatedNvjpeg, SamplesOfEightBitsAreTheHosts) {
  const auto context = make_cuda_context();
  for (const data::PreprocessOptions& options : deferrable_presets(13, 16)) {
    if (data::pixel_type(options.preset) != DType::u8) continue;
    const auto images = deferred(usual_jpegs(), options, context->host_allocator());
    EXPECT_EQ(decode<uint8_t>(*context, images, options), samples_by_host<uint8_t>(usual_jpegs(), options));
  }
}

// The host uses the fast DCT for tf_cnn. All DCTs agree on flat images: the remaining difference is resampling, which
// may round once instead of twice.
TEST(EmulatedNvjpeg, SamplesInFloatsAreTheHosts) {
  const auto context = make_cuda_context();
  std::vector<std::vector<std::byte>> jpegs;
  for (const int grey : {0, 60, 200, 255}) {
    data::Image image(24, 17);
    for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(grey);
    jpegs.push_back(data::encode_jpeg(image.view()));
  }
  for (const data::PreprocessOptions& options : deferrable_presets(13, 30)) {
    if (data::pixel_type(options.preset) != DType::f32) continue;
    const auto images = deferred(jpegs, options, context->host_allocator());
    const std::vector<float> found = decode<float>(*context, images, options);
    const std::vector<float> expected = samples_by_host<float>(jpegs, options);
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4f) << i;
  }
}

TEST(EmulatedNvjpeg, AGpuWithoutAnEngineDecodesAndSaysSo) {
  const auto context = make_cuda_context();
  emulation::set_jpeg_engine(false);
  const data::PreprocessOptions options{.preset = data::Preset::torchvision, .height = 8, .width = 8};
  const auto images = deferred(usual_jpegs(), options, context->host_allocator());
  EXPECT_EQ(decode<uint8_t>(*context, images, options), samples_by_host<uint8_t>(usual_jpegs(), options));
  emulation::set_jpeg_engine(true);
  ASSERT_EQ(context->notices().size(), 1u);
  EXPECT_NE(context->notices()[0].find("no JPEG hardware decoder"), std::string::npos) << context->notices()[0];
}

// nvJPEG reports a bad image in a batch without its index.
TEST(EmulatedNvjpeg, ADamagedImageIsFoundAmongSoundOnes) {
  const auto context = make_cuda_context();
  const data::PreprocessOptions options{.preset = data::Preset::torchvision, .height = 8, .width = 8};
  auto images = deferred(usual_jpegs(), options, context->host_allocator());
  for (const size_t row : {1, 4, 6}) images[row].jpeg.resize(images[row].jpeg.size() / 2);
  const Tensor pixels = context->empty({7, 8, 8, 3}, DType::u8);
  GpuJpegDecoder decoder(*context);
  EXPECT_EQ(decoder.decode(images, pixels), (std::vector<int64_t>{1, 4, 6}));
  context->wait(Stream::compute, context->record(Stream::copy));
  const std::vector<uint8_t> found = values_of<uint8_t>(*context, pixels);
  const std::vector<uint8_t> expected = samples_by_host<uint8_t>(usual_jpegs(), options);
  for (const size_t row : {0, 2, 3, 5})
    for (size_t i = row * 192; i < (row + 1) * 192; ++i) ASSERT_EQ(found[i], expected[i]) << "row " << row;
}

TEST(EmulatedNvjpegDeathTest, AStateServesOneBatchAtATime) {
  emulation::set_streams(emulation::Streams::deferred);
  nvjpegHandle_t handle = nullptr;
  nvjpegJpegState_t state = nullptr;
  ASSERT_EQ(nvjpegCreateEx(NVJPEG_BACKEND_HARDWARE, nullptr, nullptr, 0, &handle), NVJPEG_STATUS_SUCCESS);
  ASSERT_EQ(nvjpegJpegStateCreate(handle, &state), NVJPEG_STATUS_SUCCESS);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const std::vector<std::byte> jpeg = usual_jpegs()[0];
  const auto* bytes = reinterpret_cast<const unsigned char*>(jpeg.data());
  const size_t length = jpeg.size();
  nvjpegImage_t to{};
  to.pitch[0] = 3 * 64;
  void* pixels = nullptr;
  ASSERT_EQ(cudaMalloc(&pixels, to.pitch[0] * 48), cudaSuccess);
  to.channel[0] = static_cast<unsigned char*>(pixels);
  ASSERT_EQ(nvjpegDecodeBatchedInitialize(handle, state, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_SUCCESS);
  ASSERT_EQ(nvjpegDecodeBatched(handle, state, &bytes, &length, &to, stream), NVJPEG_STATUS_SUCCESS);
  EXPECT_DEATH(nvjpegDecodeBatchedInitialize(handle, state, 1, 1, NVJPEG_OUTPUT_RGBI), "a state is used again");
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(nvjpegDecodeBatchedInitialize(handle, state, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_SUCCESS);
  EXPECT_EQ(cudaFree(pixels), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  nvjpegJpegStateDestroy(state);
  nvjpegDestroy(handle);
}

}  // namespace
}  // namespace dtrain
