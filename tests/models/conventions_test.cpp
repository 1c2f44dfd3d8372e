// Model conventions: each one changes the model that is built.
#include "dtrain/models/conventions.h"

#include <cmath>

#include "dtrain/models/catalog.h"
#include "dtrain/models/resnet.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

using Pixels = std::vector<float>;

// Logits of `forward` on two images of 32 pixels.
Pixels logits_of(Context& context, const std::function<Var(Tape&, const Var&)>& forward) {
  const Tensor images = context.empty({2, 32, 32, 3});
  Pixels pixels(static_cast<size_t>(images.count()));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 7919 % 101) / 50 - 1;
  context.upload(pixels.data(), images);
  Tape tape(context, Mode::eval);
  const Tensor y = forward(tape, tape.constant(images)).value;
  Pixels logits(static_cast<size_t>(y.count()));
  context.download(y, logits.data(), "conventions");
  return logits;
}

// Catalogue model with 7 classes.
struct Built {
  explicit Built(const std::string& name, const ModelConventions& conventions = {}) : store(*context) {
    model = make_classifier(store, classifier_info(name, "imagenet"),
                            {.classes = 7, .image_size = 32, .conventions = conventions});
    store.allocate(/*seed=*/1);
  }
  Pixels logits() {
    return logits_of(*context, [&](Tape& tape, const Var& x) { return model.forward(tape, x); });
  }
  const Init& init(const std::string& name) const {
    for (const Parameter& parameter : store.parameters())
      if (parameter.name == name) return parameter.init;
    throw Error("no parameter " + name);
  }

  std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  ParameterStore store;
  Classifier model;
};

// ResNet with two stages of one bottleneck and an ImageNet stem; v1 by default.
Pixels small_resnet(const ModelConventions& conventions, bool v1_5 = false) {
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  Trace trace(32);
  const ResNetOptions options{.blocks = {1, 1}, .bottleneck = true, .stride_in_3x3 = v1_5};
  const ResNet model(store, trace, by_conventions(options, conventions), 7);
  store.allocate(/*seed=*/1);
  return logits_of(*context, model);
}

TEST(Conventions, DefaultsKeepTheModel) {
  EXPECT_EQ(describe({}), "");
  const ResNetOptions options = by_conventions({.stride_in_3x3 = false}, {});
  EXPECT_FALSE(options.stride_in_3x3);
  EXPECT_EQ(options.padding, StridedPadding::both);
  EXPECT_FALSE(options.pool_padding || options.stem_padding || options.zero_last_gamma);
}

TEST(Conventions, StridePlacementTurnsV1IntoV15) {
  EXPECT_NE(small_resnet({}), small_resnet({}, /*v1_5=*/true));
  EXPECT_EQ(small_resnet({.stride_in_3x3 = true}), small_resnet({}, /*v1_5=*/true));
  EXPECT_EQ(small_resnet({.stride_in_3x3 = false}, /*v1_5=*/true), small_resnet({}));
}

TEST(Conventions, PaddingShiftsStridedLayers) {
  const ModelConventions pool{.stride_in_3x3 = true, .padding = PaddingConvention::same_pool};
  const ModelConventions same{.stride_in_3x3 = true, .padding = PaddingConvention::same};
  EXPECT_EQ(small_resnet({.padding = PaddingConvention::symmetric}), small_resnet({}));
  EXPECT_NE(small_resnet(pool), small_resnet({.stride_in_3x3 = true}));
  EXPECT_NE(small_resnet(pool), small_resnet(same));
  const ResNetOptions options = by_conventions({}, same);
  EXPECT_EQ(options.stem_padding, StridedPadding::both) << "AWS pads the stem's image itself, by 3";
  EXPECT_EQ(options.pool_padding, StridedPadding::after);
  EXPECT_EQ(options.padding, StridedPadding::after);
}

TEST(Conventions, SetBatchNormEpsilonAndDecay) {
  EXPECT_NE(Built("resnet20").logits(), Built("resnet20", {.batch_norm_epsilon = 0.1f}).logits());
  const ResNetOptions options = by_conventions({}, {.batch_norm_epsilon = 1e-4f, .batch_norm_decay = 0.97f});
  EXPECT_EQ(options.batch_norm.epsilon, 1e-4f);
  EXPECT_EQ(options.batch_norm.momentum, 0.97f);
}

TEST(Conventions, ZeroInitializeLastGamma) {
  const Built model("resnet20", {.zero_last_gamma = true});
  EXPECT_EQ(model.init("layer1.0.bn2.weight").value, 0);
  EXPECT_EQ(model.init("layer1.0.bn1.weight").value, 1);
}

TEST(Conventions, SelectInitializers) {
  EXPECT_EQ(Built("resnet20").logits(), Built("resnet20", {.convolutions = ConvolutionInit::he_fan_out}).logits());
  const Built tf("resnet20", {.convolutions = ConvolutionInit::variance_scaling, .classifier = ClassifierInit::normal});
  const Init conv = tf.init("layer2.0.conv1.weight"), fc = tf.init("fc.weight");
  EXPECT_EQ(conv.kind, Init::Kind::truncated_normal);
  EXPECT_NEAR(conv.value, std::sqrt(1.0 / (9 * 16)) / 0.87962566, 1e-7);
  EXPECT_EQ(fc.kind, Init::Kind::normal);
  EXPECT_EQ(fc.value, 0.01f);
  EXPECT_EQ(tf.init("fc.bias").value, 0);
  const Built torch("resnet20", {.classifier = ClassifierInit::uniform});
  for (const char* name : {"fc.weight", "fc.bias"}) {
    EXPECT_EQ(torch.init(name).kind, Init::Kind::uniform);
    EXPECT_EQ(torch.init(name).value, 0.125f);
  }
  // Other model families follow these, too.
  const Built lenet("lenet",
                    {.convolutions = ConvolutionInit::variance_scaling, .classifier = ClassifierInit::uniform});
  EXPECT_EQ(lenet.init("conv1.weight").kind, Init::Kind::truncated_normal);
  EXPECT_EQ(lenet.init("fc2.bias").kind, Init::Kind::uniform);
  EXPECT_EQ(lenet.init("fc1.bias").kind, Init::Kind::constant);
}

TEST(Conventions, DescribeChangesOfTheFunction) {
  EXPECT_EQ(describe({.stride_in_3x3 = true,
                      .padding = PaddingConvention::same,
                      .batch_norm_epsilon = 1e-4f,
                      .zero_last_gamma = true,
                      .classifier = ClassifierInit::normal}),
            ", stride in 3x3, padding same, batch norm epsilon 0.0001");
  EXPECT_EQ(describe({.stride_in_3x3 = false, .padding = PaddingConvention::symmetric}),
            ", stride in 1x1, padding symmetric");
}

TEST(Conventions, ParseCheckpointText) {
  for (const char* const text :
       {"", ", stride in 3x3", ", stride in 1x1, padding same", ", padding same_pool, batch norm epsilon 0.0001",
        ", stride in 3x3, padding symmetric, batch norm epsilon 0.001"})
    EXPECT_EQ(describe(conventions_from(text)), text);
  EXPECT_EQ(conventions_from(", batch norm epsilon 0.0001").batch_norm_epsilon, 0.0001f);
  for (const char* const text : {"x", ", padding", ", batch norm epsilon", ", batch norm epsilon nan",
                                 ", batch norm epsilon -1", ", padding same, stride in 3x3", ", padding same "})
    expect_error([&] { conventions_from(text); }, Fault::checkpoint, concat("found '", text, "'"));
}

}  // namespace
}  // namespace dtrain::models
