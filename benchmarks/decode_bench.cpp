// Preprocessing throughput of one core, from encoded bytes in memory to a 224 px training sample: decode, random
// resized crop, flip, and the normalisation that a device would do. Images come from a folder of JPEGs:
//   DTRAIN_DECODE_DIR=../shared/data/imagenet_sample/train decode_bench
// Peer with PIL and torchvision: benchmarks/peers/decode_peer.py.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dtrain/data/augment.h"

namespace dtrain::data {
namespace {

constexpr int kSize = 224;

const std::vector<std::vector<std::byte>>& images() {
  static const std::vector<std::vector<std::byte>> all = [] {
    const char* folder = std::getenv("DTRAIN_DECODE_DIR");
    std::vector<std::filesystem::path> paths;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder ? folder : "../shared/data/imagenet_sample/train"))
      if (entry.is_regular_file()) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::vector<std::byte>> bytes;
    for (const auto& path : paths) {
      std::ifstream in(path, std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(in)), {});
      const auto* begin = reinterpret_cast<const std::byte*>(text.data());
      bytes.emplace_back(begin, begin + text.size());
    }
    return bytes;
  }();
  return all;
}

void normalize(const uint8_t* pixels, float* out) {
  constexpr float mean[] = {0.485f * 255, 0.456f * 255, 0.406f * 255};
  constexpr float scale[] = {1 / (0.229f * 255), 1 / (0.224f * 255), 1 / (0.225f * 255)};
  for (int i = 0; i < kSize * kSize; ++i)
    for (int c = 0; c < 3; ++c) out[3 * i + c] = (pixels[3 * i + c] - mean[c]) * scale[c];
}

void normalize(const float* pixels, float* out) {
  for (int i = 0; i < 3 * kSize * kSize; ++i) out[i] = pixels[i] * (1 / 127.5f) - 1;
}

void augment(benchmark::State& state, PreprocessOptions options) {
  options.height = options.width = kSize;
  const auto preprocessor = make_preprocess(options)();
  std::vector<float> pixels(3 * kSize * kSize), normalized(pixels.size());
  SampleKey key;
  for (auto _ : state) {
    const auto& bytes = images()[key.position % images().size()];
    preprocessor->run(bytes, {}, key, pixels.data());
    if (options.preset == Preset::tf_cnn)
      normalize(pixels.data(), normalized.data());
    else
      normalize(reinterpret_cast<const uint8_t*>(pixels.data()), normalized.data());
    benchmark::DoNotOptimize(normalized.data());
    key.sample = ++key.position;
  }
  state.SetItemsProcessed(state.iterations());
}

// Host's share of the work when a GPU decodes.
void defer(benchmark::State& state, PreprocessOptions options) {
  options.height = options.width = kSize;
  const auto preprocessor = make_preprocess(options)();
  EncodedImage image(std::make_shared<HostAllocator>());
  SampleKey key;
  int64_t left = 0;
  for (auto _ : state) {
    left += preprocessor->defer(images()[key.position % images().size()], {}, key, image).has_value();
    key.sample = ++key.position;
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["left"] = static_cast<double>(left) / static_cast<double>(state.iterations());
}

void whole(benchmark::State& state, DecodeOptions options) {
  ImageDecoder decoder(options);
  size_t i = 0;
  for (auto _ : state) {
    decoder.open(images()[i++ % images().size()]);
    benchmark::DoNotOptimize(decoder.decode().pixels);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(augment, torchvision_train, {.preset = Preset::torchvision});
BENCHMARK_CAPTURE(augment, torchvision_eval, {.preset = Preset::torchvision, .training = false});
BENCHMARK_CAPTURE(augment, tf_cnn_train, {.preset = Preset::tf_cnn});
BENCHMARK_CAPTURE(augment, tf_cnn_eval, {.preset = Preset::tf_cnn, .training = false});
BENCHMARK_CAPTURE(defer, torchvision_train, {.preset = Preset::torchvision});
BENCHMARK_CAPTURE(defer, tf_cnn_train, {.preset = Preset::tf_cnn});
BENCHMARK_CAPTURE(whole, decode, {});
BENCHMARK_CAPTURE(whole, decode_fast, {.fast_dct = true, .fancy_upsampling = false});

}  // namespace
}  // namespace dtrain::data

BENCHMARK_MAIN();
