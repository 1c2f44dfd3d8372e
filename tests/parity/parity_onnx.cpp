// The engine's side of onnx_classifiers.py and foreign_weights.py: exports a classifier with random or given weights,
// and computes its logits.
//   parity_onnx FOLDER name=NAME dataset=NAME size=... classes=... [padding=...] [stride=1x1|3x3] [epsilon=...]
//               [weights=FILE]
// Writes model.onnx, weights.safetensors and results.safetensors: `images` [n, 3, h, w] in [0, 1], and `logits`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "apps/cli/conventions.h"
#include "dtrain/models/catalog.h"
#include "dtrain/models/classifier_weights.h"
#include "dtrain/models/onnx/classifier.h"
#include "dtrain/train/weights.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

constexpr int64_t kImages = 2;
constexpr float kMean[3] = {120, 110, 100}, kScale[3] = {0.017f, 0.018f, 0.019f};

class Random {
 public:
  void fill(const Tensor& tensor, float low, float high) {
    std::vector<float> values(static_cast<size_t>(tensor.count()));
    for (float& value : values)
      value = low + (high - low) * static_cast<float>(generator_()) / static_cast<float>(generator_.max());
    std::ranges::copy(values, tensor.data<float>());
  }

 private:
  std::mt19937 generator_{7};
};

// Randomises all values, so that omissions show, with magnitudes that keep logits dependent on the images.
void randomize(ParameterStore& store, Random& random) {
  for (const Parameter& parameter : store.parameters()) {
    const bool scale = parameter.name.ends_with(".weight");
    const float fan_in = static_cast<float>(parameter.shape.count() / parameter.shape[0]);
    const float bound = parameter.shape.rank() > 1 ? std::sqrt(6 / fan_in) : 0.3f;
    if (scale && parameter.shape.rank() == 1)
      random.fill(parameter.value, 0.5f, 1.5f);
    else
      random.fill(parameter.value, -bound, bound);
  }
  for (const Buffer& buffer : store.buffers()) {
    const bool variance = buffer.name.ends_with("_var");
    random.fill(buffer.value, variance ? 0.5f : -0.3f, variance ? 2.0f : 0.3f);
  }
  store.refresh_compute();
}

std::vector<float> nchw(const Tensor& images) {
  const int64_t n = images.dim(0), pixels = images.dim(1) * images.dim(2);
  std::vector<float> result(static_cast<size_t>(images.count()));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t c = 0; c < 3; ++c)
        result[static_cast<size_t>((i * 3 + c) * pixels + p)] = images.data<float>()[(i * pixels + p) * 3 + c] / 255;
  return result;
}

models::ModelConventions conventions_of(const std::map<std::string, std::string>& options) {
  cli::ConventionFlags flags;
  if (options.contains("padding")) flags.resnet_padding = options.at("padding");
  if (options.contains("stride")) flags.bottleneck_stride = options.at("stride");
  if (options.contains("epsilon")) flags.batch_norm_epsilon = std::stod(options.at("epsilon"));
  return flags.conventions();
}

void run(const std::string& folder, const std::map<std::string, std::string>& options) {
  const auto context = parity_context("cpu");
  ParameterStore store(*context);
  const models::ClassifierInfo& info = models::classifier_info(options.at("name"), options.at("dataset"));
  const models::Classifier model = models::make_classifier(store, info,
                                                           {.classes = std::stoll(options.at("classes")),
                                                            .image_size = std::stoll(options.at("size")),
                                                            .conventions = conventions_of(options)});
  store.allocate(3, {.gradients = false});
  Random random;
  if (options.contains("weights")) {
    const auto loaded = models::load_classifier(store, info, options.at("weights"));
    DT_CHECK(loaded.report.complete(), loaded.report.summary());
  } else {
    randomize(store, random);
  }
  PixelNormalization pixels;
  std::ranges::copy(kMean, pixels.mean);
  std::ranges::copy(kScale, pixels.scale);
  models::export_onnx(store, model, pixels, folder + "/model.onnx");
  save_weights(store, folder + "/weights.safetensors");

  const Tensor images = context->empty({kImages, model.image_size, model.image_size, 3});
  random.fill(images, 0, 255);
  Tape tape(*context, Mode::eval);
  TensorFile results;
  const std::vector<float> given = nchw(images);
  results.add("images", given);
  results.add(*context, "logits", model.forward(tape, tape.constant(normalize_pixels(*context, images, pixels))).value);
  results.write(folder + "/results.safetensors");
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    DT_CHECK(argc > 2, "usage: parity_onnx FOLDER key=value...");
    std::map<std::string, std::string> options;
    for (int i = 2; i < argc; ++i) {
      const std::string word = argv[i];
      options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    dtrain::run(argv[1], options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity_onnx: %s\n", error.what());
    return 1;
  }
}
