// Every classifier takes a training step, and a small one overfits a batch.
#include <cmath>

#include "dtrain/models/catalog.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/trainer.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

struct SmallCase {
  const char *name, *dataset;
  int64_t image_size, batch;
};

std::ostream& operator<<(std::ostream& out, const SmallCase& test) {
  return out << test.name << " on " << test.dataset;
}

class TrainingStep : public testing::TestWithParam<SmallCase> {};

TEST_P(TrainingStep, LowersLossAsGradientPredicts) {
  const SmallCase& test = GetParam();
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Classifier model =
      make_classifier(store, classifier_info(test.name, test.dataset), {.classes = 5, .image_size = test.image_size});
  store.allocate(1);
  Optimizer optimizer(store, {.update = {.rule = UpdateRule::sgd}, .weight_decay = 0});
  const Tensor images = to_device(*context, random_array({test.batch, test.image_size, test.image_size, 3}, 2));
  std::vector<int32_t> classes;
  for (int64_t i = 0; i < test.batch; ++i) classes.push_back(static_cast<int32_t>(i % 5));
  const Tensor labels = to_device(*context, {test.batch}, classes);
  const auto forward = [&](Tape& tape, int) { return model.loss(tape, tape.constant(images), labels); };
  // Each step is the first of its trainer, so that dropout masks are equal.
  const auto step = [&](double rate) {
    Schedule schedule;
    schedule.base = rate;
    Trainer trainer(store, optimizer, schedule, {.seed = 3});
    const StepReport report = trainer.step(forward);
    EXPECT_TRUE(trainer.unwritten_parameters().empty());
    return report;
  };
  const StepReport still = step(0);
  EXPECT_TRUE(still.finite);
  EXPECT_TRUE(std::isfinite(still.loss) && still.loss > 0);
  EXPECT_GT(still.gradient_norm, 0);
  // For a short step along the negative gradient the loss falls by the predicted amount. The step length varies with
  // the gradient norm, which ranges from 0.3 to 2600 (batch norm over four pixels of four images).
  const double expected_fall = 0.005 * still.loss;
  step(expected_fall / (still.gradient_norm * still.gradient_norm));
  EXPECT_NEAR((still.loss - step(0).loss) / expected_fall, 1, 0.15);
}

INSTANTIATE_TEST_SUITE_P(
    Models, TrainingStep,
    testing::Values(SmallCase{"trivial", "imagenet", 32, 4}, SmallCase{"trivial", "cifar10", 32, 4},
                    SmallCase{"lenet", "imagenet", 28, 4}, SmallCase{"small_cnn", "mnist", 28, 4},
                    SmallCase{"vgg11", "imagenet", 32, 2}, SmallCase{"resnet18", "imagenet", 64, 4},
                    SmallCase{"resnet50", "imagenet", 64, 4}, SmallCase{"resnet50_v1.5", "imagenet", 64, 4},
                    SmallCase{"resnet20", "cifar10", 32, 4}, SmallCase{"resnet56", "cifar10", 16, 4},
                    SmallCase{"resnet20_v2", "cifar10", 16, 4}, SmallCase{"googlenet", "imagenet", 32, 4},
                    SmallCase{"alexnet", "cifar10", 16, 4}, SmallCase{"densenet40_k12", "cifar10", 16, 4},
                    SmallCase{"mobilenet", "imagenet", 64, 4}));

// A model of one matrix and an auxiliary head of twice its logits.
TEST(Training, AuxiliaryHeadsCountInTrainingOnly) {
  for (const auto& context : devices()) {
    Classifier model;
    model.network = [](Tape& tape, const Var& x, std::vector<Var>* auxiliary) {
      if (auxiliary) auxiliary->push_back(add(tape, x, x));
      return x;
    };
    const Array values = random_array({3, 4}, 1);
    const Tensor labels = to_device<int32_t>(*context, {3}, {0, 3, 2});
    const auto cross_entropy = [&](double factor) {
      Array logits = values;
      for (double& logit : logits.values) logit *= factor;
      Tape tape(*context, Mode::eval);
      const Var x = tape.constant(to_device(*context, logits));
      return to_host(*context, softmax_cross_entropy(tape, x, labels).loss.value)[0];
    };
    const auto loss = [&](Mode mode) {
      Tape tape(*context, mode);
      const Loss result = model.loss(tape, tape.constant(to_device(*context, values)), labels);
      EXPECT_EQ(result.metrics.size(), 2u);
      return to_host(*context, result.total.value)[0];
    };
    EXPECT_NEAR(loss(Mode::train), cross_entropy(1) + 0.4 * cross_entropy(2), 1e-6);
    EXPECT_EQ(loss(Mode::eval), cross_entropy(1));
  }
}

TEST(Training, Resnet20OverfitsABatch) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Classifier model =
      make_classifier(store, classifier_info("resnet20", "cifar10"), {.classes = 4, .image_size = 16});
  store.allocate(4);
  Optimizer optimizer(store, {.update = {.rule = UpdateRule::momentum}, .weight_decay = 1e-4f});
  Schedule schedule;
  schedule.base = 0.05;
  Trainer trainer(store, optimizer, schedule);
  const Tensor images = to_device(*context, random_array({8, 16, 16, 3}, 6));
  const Tensor labels = to_device<int32_t>(*context, {8}, {0, 1, 2, 3, 3, 2, 1, 0});
  StepReport report;
  for (int step = 0; step < 30; ++step)
    report = trainer.step([&](Tape& tape, int) {
      return softmax_cross_entropy(tape, model.forward(tape, tape.constant(images)), labels);
    });
  EXPECT_LT(report.loss, 0.05);
  EXPECT_EQ(report.metric("top_1_accuracy"), 1);
}

}  // namespace
}  // namespace dtrain::models
