// The engine's side of preprocessing.py: output of every ImageNet preprocessing preset.
//   parity_preprocessing RESULTS SIZE SAMPLES IMAGE...     RESULTS is a safetensors file
// Tensors `<preprocessing>[+distortions].<train|eval>.<image>.<sample>` are the pixels [size, size, 3] before
// normalisation, `.normalized` ones after it, both f32.
#include <cstdio>

#include "apps/cli/vision.h"
#include "dtrain/data/catalog.h"
#include "tests/files.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

// Keep equal to preprocessing.py.
constexpr uint64_t kSeed = 7, kEpoch = 3;
constexpr data::NormalizedBox kBoxes[] = {{0.1f, 0.2f, 0.5f, 0.6f}, {0.55f, 0.5f, 0.9f, 0.95f}};

struct Comparison {
  Context& context;
  TensorFile results;
  std::vector<std::vector<std::byte>> images;
  int size, samples;

  void run(const std::string& name, const data::Pixels& pixels, bool training) {
    const data::PreprocessorFactory make = pixels.make(training);
    const auto preprocessor = make();
    for (size_t image = 0; image < images.size(); ++image)
      for (int sample = 0; sample < (training ? samples : 1); ++sample) {
        const auto number = static_cast<uint64_t>(sample);
        const Tensor raw = context.empty({1, size, size, 3}, make.dtype);
        std::vector<std::byte> memory(raw.bytes());
        preprocessor->run(images[image], kBoxes, {kSeed, kEpoch, number, number}, memory.data());
        context.upload(memory.data(), raw);
        const std::string key = concat(name, training ? ".train." : ".eval.", image, ".", sample);
        results.add(context, key, normalize_pixels(context, raw, {}));  // as floats, and no more
        results.add(context, key + ".normalized", normalize_pixels(context, raw, cli::normalization_of(pixels)));
      }
  }
};

int run(const std::vector<std::string>& arguments) {
  DT_CHECK(arguments.size() > 4, "usage: parity_preprocessing RESULTS SIZE SAMPLES IMAGE...");
  const auto context = parity_context("cpu");
  Comparison comparison{*context, {}, {}, std::stoi(arguments[2]), std::stoi(arguments[3])};
  for (size_t i = 4; i < arguments.size(); ++i) {
    const std::string text = read_file(arguments[i]);
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    comparison.images.emplace_back(begin, begin + text.size());
  }
  for (const std::string& name : data::preprocessing_names())
    for (const bool training : {true, false}) {
      data::Pixels pixels{.preprocessing = name, .size = comparison.size};
      comparison.run(name, pixels, training);
      if (!training || (name != "tf_cnn" && name != "aws")) continue;
      pixels.distortions = true;
      comparison.run(name + "+distortions", pixels, training);
    }
  data::Pixels ml_perf{.ml_perf = true, .size = comparison.size};
  comparison.run("tf_cnn+ml_perf", ml_perf, true);
  comparison.results.write(arguments[1]);
  return 0;
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    return dtrain::run({argv, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
