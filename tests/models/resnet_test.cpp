// ResNet as a component: features without classifier, and two networks in one store.
#include "dtrain/models/resnet.h"

#include "dtrain/models/catalog.h"
#include "dtrain/ops/scalar_loss.h"
#include "dtrain/train/optimizer.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

const ResNetOptions kResNet26{.blocks = {2, 2, 2, 2}, .bottleneck = true};
const ResNetOptions kResNet8{.blocks = {1, 1, 1}, .cifar = true};

Var pictures(Tape& tape, int64_t n, int64_t h, int64_t w) {
  return tape.constant(to_device(tape.context(), random_array({n, h, w, 3}, 1)));
}

TEST(ResNet, FeaturesAreStageOutputs) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    Trace trace(64);
    const ResNet model(store, trace, kResNet26, /*classes=*/0);
    store.allocate(1);
    Tape tape(*context, Mode::eval);
    const std::vector<Var> stages = model.features(tape, pictures(tape, 1, 64, 70));
    ASSERT_EQ(stages.size(), 4u);
    EXPECT_EQ(stages[0].shape(), (Shape{1, 16, 18, 256}));
    EXPECT_EQ(stages[1].shape(), (Shape{1, 8, 9, 512}));
    EXPECT_EQ(stages[2].shape(), (Shape{1, 4, 5, 1024}));
    EXPECT_EQ(stages[3].shape(), (Shape{1, 2, 3, 2048}));
  }
}

TEST(ResNet, TheClassifierReadsTheLastStage) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    Trace trace(32);
    const ResNet model(store, trace, kResNet8, /*classes=*/5);
    store.allocate(1);
    Tape tape(*context, Mode::eval);
    const Var x = pictures(tape, 2, 32, 32);
    const std::vector<Var> stages = model.features(tape, x);
    ASSERT_EQ(stages.size(), 3u);
    EXPECT_EQ(stages[0].shape(), (Shape{2, 32, 32, 16}));
    EXPECT_EQ(stages[2].shape(), (Shape{2, 8, 8, 64}));
    const Array pooled = to_host(*context, global_average_pool(tape, stages[2]).value);
    const Array weight = to_host(*context, store.find("fc.weight")->value);
    const Array logits = to_host(*context, model(tape, x).value);
    Array expected({2, 5});
    for (int64_t i = 0; i < 10; ++i)
      for (int64_t c = 0; c < 64; ++c) expected[i] += pooled[i / 5 * 64 + c] * weight[i % 5 * 64 + c];
    expect_close(logits, expected, 1e-5, "logits");
  }
}

TEST(ResNet, WithoutClassesHasNoClassifier) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  Trace trace(32);
  const ResNet model(store, trace, kResNet8, /*classes=*/0);
  EXPECT_EQ(store.find("fc.weight"), nullptr);
  store.allocate(1);
  Tape tape(*context, Mode::eval);
  expect_error([&] { model(tape, pictures(tape, 1, 32, 32)); }, Fault::config,
               "built without classes; call features()");
}

// Distillation: the student learns from a fixed teacher.
TEST(ResNet, TwoInOneStoreHaveScopes) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const auto make = [&](const std::string& prefix) {
      const ParameterScope scope(store, prefix);
      return make_classifier(store, classifier_info("resnet20", "cifar10"));
    };
    const Classifier teacher = make("teacher."), student = make("student.");
    EXPECT_EQ(teacher.layers[0].weight, "teacher.conv1.weight");
    store.freeze("teacher.");
    store.allocate(1);
    Optimizer optimizer(store, {});
    const auto values = [&](const char* name) { return to_host(*context, store.find(name)->value).values; };
    const auto statistics = [&](const char* name) { return to_host(*context, store.find_buffer(name)->value).values; };
    EXPECT_NE(values("teacher.conv1.weight"), values("student.conv1.weight"));
    const auto taught = values("teacher.conv1.weight"), learnt = values("student.conv1.weight");
    const auto before = statistics("teacher.bn1.running_var");

    context->set_scalars({.learning_rate = 0.1f});
    Tape tape(*context);
    const Var x = pictures(tape, 2, 32, 32);
    const Tensor target = teacher.forward(tape, x).value;
    tape.backward(mean_squared_error(tape, student.forward(tape, x), target), &store);
    optimizer.step();
    EXPECT_EQ(values("teacher.conv1.weight"), taught);
    EXPECT_EQ(statistics("teacher.bn1.running_var"), before);
    EXPECT_NE(values("student.conv1.weight"), learnt);
    EXPECT_NE(statistics("student.bn1.running_var"), before);
  }
}

}  // namespace
}  // namespace dtrain::models
