// int8 inference of one classifier per family against fp32, with initial weights and small images. Layers without an
// int8 kernel lie between quantised ones.
#include <cmath>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/models/catalog.h"
#include "dtrain/train/calibrator.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

struct QuantizedModel {
  const char *name, *dataset;
  int64_t image_size;
  size_t layers;  // number of int8 layers
};

// Running statistics are initial values, so that activations of the deepest networks would grow without bound; those
// are left out.
const QuantizedModel kModels[] = {
    {"lenet", "mnist", 28, 4},          {"alexnet", "cifar10", 32, 5},     {"resnet20", "cifar10", 32, 22},
    {"resnet20_v2", "cifar10", 32, 20}, {"googlenet", "imagenet", 64, 58}, {"densenet40_k12", "cifar10", 16, 40},
    {"mobilenet", "imagenet", 64, 36},
};

std::vector<float> logits_of(Context& context, const Classifier& model, PreparedWeights& prepared, const Tensor& images,
                             Calibrator* calibrator = nullptr) {
  Tape tape(context, prepared);
  if (calibrator) calibrator->observe(tape);
  return values_of<float>(context, model.forward(tape, tape.constant(images)).value);
}

TEST(QuantizedModels, Int8IsCloseToFp32) {
  const auto context = make_cpu_context({.threads = 2});
  for (const QuantizedModel& test : kModels) {
    SCOPED_TRACE(test.name);
    ParameterStore store(*context);
    const Classifier model = make_classifier(store, classifier_info(test.name, test.dataset),
                                             {.classes = 10, .image_size = test.image_size});
    store.allocate(/*seed=*/1);
    const auto images = [&](uint64_t stream) {
      return to_device(*context, random_array({2, test.image_size, test.image_size, 3}, stream, -1, 1));
    };
    PreparedWeights floats(store), bytes(store);
    Calibrator calibrator(store);
    for (const uint64_t stream : {1, 2}) logits_of(*context, model, floats, images(stream), &calibrator);
    const NamedLayers layers = calibrator.layers(RangeRule::max);
    EXPECT_EQ(layers.size(), test.layers);
    bytes.quantize(layers_of(layers, store));
    const std::vector<float> expected = logits_of(*context, model, floats, images(3)),
                             found = logits_of(*context, model, bytes, images(3));
    double squares = 0, of = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      squares += std::pow(found[i] - expected[i], 2);
      of += std::pow(expected[i], 2);
    }
    EXPECT_LT(std::sqrt(squares / of), 0.06);
  }
}

}  // namespace
}  // namespace dtrain::models
