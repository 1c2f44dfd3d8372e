// In what respects programs build one and the same model in different ways: each reaches the model that is built.
#include "models/conventions.h"

#include <cmath>

#include "models/catalog.h"
#include "models/resnet.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

// What a model of 7 classes for images of 32 pixels makes of two images, and its parameters.
struct Built {
  explicit Built(const std::string& name, const ModelConventions& conventions = {}) : store(*context) {
    model = make_classifier(store, classifier_info(name, "imagenet"),
                            {.classes = 7, .image_size = 32, .conventions = conventions});
    store.allocate(/*seed=*/1);
    const Tensor image = context->empty({2, 32, 32, 3});
    std::vector<float> pixels(static_cast<size_t>(image.count()));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 7919 % 101) / 50 - 1;
    context->upload(pixels.data(), image);
    Tape tape(*context, Mode::eval);
    const Tensor y = model.forward(tape, tape.constant(image)).value;
    logits.resize(static_cast<size_t>(y.count()));
    context->download(y, logits.data(), "conventions");
  }
  const Parameter& at(const std::string& name) const {
    for (const Parameter& parameter : store.parameters())
      if (parameter.name == name) return parameter;
    throw Error("no parameter " + name);
  }

  std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  ParameterStore store;
  Classifier model;
  std::vector<float> logits;
};

TEST(Conventions, WithoutAnyAModelIsAsItWas) {
  EXPECT_EQ(describe({}), "");
  const ResNetOptions options = by_conventions({.stride_in_3x3 = false}, {});
  EXPECT_FALSE(options.stride_in_3x3);
  EXPECT_EQ(options.padding, StridedPadding::both);
  EXPECT_FALSE(options.pool_padding || options.stem_padding || options.zero_last_gamma);
}

TEST(Conventions, TheStrideMakesOneModelTheOther) {
  const Built v1("resnet50"), v1_5("resnet50_v1.5"), moved("resnet50", {.stride_in_3x3 = true});
  EXPECT_NE(v1.logits, v1_5.logits);
  EXPECT_EQ(moved.logits, v1_5.logits);
  EXPECT_EQ(moved.model.multiply_adds, v1_5.model.multiply_adds);
}

TEST(Conventions, PaddingMovesWhatStrides) {
  const Built plain("resnet18"), symmetric("resnet18", {.padding = PaddingConvention::symmetric});
  const Built pool("resnet18", {.padding = PaddingConvention::same_pool});
  const Built same("resnet18", {.padding = PaddingConvention::same});
  EXPECT_EQ(plain.logits, symmetric.logits);
  EXPECT_NE(plain.logits, pool.logits);
  EXPECT_NE(pool.logits, same.logits);
  const ResNetOptions options = by_conventions({}, {.padding = PaddingConvention::same});
  EXPECT_EQ(options.stem_padding, StridedPadding::both) << "AWS pads the stem's image itself, by 3";
  EXPECT_EQ(options.pool_padding, StridedPadding::after);
  EXPECT_EQ(options.padding, StridedPadding::after);
}

TEST(Conventions, BatchNormsTakeEpsilonAndDecay) {
  const Built plain("resnet18"), coarse("resnet18", {.batch_norm_epsilon = 0.1f});
  EXPECT_NE(plain.logits, coarse.logits);
  const ResNetOptions options = by_conventions({}, {.batch_norm_epsilon = 1e-4f, .batch_norm_decay = 0.97f});
  EXPECT_EQ(options.batch_norm.epsilon, 1e-4f);
  EXPECT_EQ(options.batch_norm.momentum, 0.97f);
}

TEST(Conventions, TheLastGammaOfABlockIsZero) {
  const Built model("resnet50", {.zero_last_gamma = true});
  EXPECT_EQ(model.at("layer1.0.bn3.weight").init.value, 0);
  EXPECT_EQ(model.at("layer1.0.bn2.weight").init.value, 1);
}

TEST(Conventions, FirstWeights) {
  const Built plain("resnet18"), he("resnet18", {.convolutions = ConvolutionInit::he_fan_out});
  EXPECT_EQ(plain.logits, he.logits);
  const Built tf("resnet18", {.convolutions = ConvolutionInit::variance_scaling, .classifier = ClassifierInit::normal});
  const Init conv = tf.at("layer2.0.conv1.weight").init, fc = tf.at("fc.weight").init;
  EXPECT_EQ(conv.kind, Init::Kind::truncated_normal);
  EXPECT_NEAR(conv.value, std::sqrt(1.0 / (9 * 64)) / 0.87962566, 1e-7);
  EXPECT_EQ(fc.kind, Init::Kind::normal);
  EXPECT_EQ(fc.value, 0.01f);
  EXPECT_EQ(tf.at("fc.bias").init.value, 0);
  const Built torch("resnet18", {.classifier = ClassifierInit::uniform});
  for (const char* name : {"fc.weight", "fc.bias"}) {
    EXPECT_EQ(torch.at(name).init.kind, Init::Kind::uniform);
    EXPECT_NEAR(torch.at(name).init.value, std::sqrt(1.0 / 512), 1e-7);
  }
  // Other families follow these too.
  const Built lenet("lenet",
                    {.convolutions = ConvolutionInit::variance_scaling, .classifier = ClassifierInit::uniform});
  EXPECT_EQ(lenet.at("conv1.weight").init.kind, Init::Kind::truncated_normal);
  EXPECT_EQ(lenet.at("fc2.bias").init.kind, Init::Kind::uniform);
  EXPECT_EQ(lenet.at("fc1.bias").init.kind, Init::Kind::constant);
}

TEST(Conventions, SayWhatMakesAnotherNetwork) {
  EXPECT_EQ(describe({.stride_in_3x3 = true,
                      .padding = PaddingConvention::same,
                      .batch_norm_epsilon = 1e-4f,
                      .zero_last_gamma = true,
                      .classifier = ClassifierInit::normal}),
            ", stride in 3x3, padding same, batch norm epsilon 0.0001");
  EXPECT_EQ(describe({.stride_in_3x3 = false, .padding = PaddingConvention::symmetric}),
            ", stride in 1x1, padding symmetric");
}

}  // namespace
}  // namespace dtrain::models
