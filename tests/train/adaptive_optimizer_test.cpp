// Layer-wise adaptive rates (LARS, LAMB, LARC), and the moving average.
#include "dtrain/train/averaged.h"
#include "tests/train/optimizer_fixture.h"

namespace dtrain {
namespace {

TEST(Optimizer, LarsScalesEachWeightByItsOwnNormsAndBiasesNotAtAll) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 1});
    OptimizerModel model(
        *context, {.update = {.rule = UpdateRule::lars, .momentum = 0, .trust = 0.01f}, .weight_decay = 0.5f}, 0.25f);
    context->upload(std::vector<float>(70, 2.0f).data(), model.last->value);
    model.optimizer->step();
    // |v| / (|g| + wd |v|) of constant tensors is that of their elements.
    EXPECT_NEAR(model.value(model.first), 1 - 0.01 * 1 / (0.25 + 0.5) * (0.25 + 0.5), 1e-6);
    EXPECT_NEAR(model.value(model.last), 2 - 0.01 * 2 / (0.25 + 1) * (0.25 + 1), 1e-6);
    EXPECT_EQ(model.value(model.bias), 1 - 0.25);
  }
}

// Adam's first direction is the sign of the gradient; norm ratios of constant tensors equal their elements' ratios.
TEST(Optimizer, LambAdaptsAndDecaysWeightsAlone) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.5f});
    OptimizerModel model(*context, {.update = {.rule = UpdateRule::lamb}, .weight_decay = 0.25f}, 4);
    context->upload(std::vector<float>(70, 2.0f).data(), model.last->value);
    model.store.set_multipliers("last", {.rate = 0.5f, .weight_decay = 2});
    model.optimizer->step();
    EXPECT_NEAR(model.value(model.first), 1 - 0.5 * (1 / 1.25) * 1.25, 1e-6);
    EXPECT_NEAR(model.value(model.last), 2 - 0.25 * (2 / 2.0) * 2, 1e-6);
    EXPECT_NEAR(model.value(model.bias), 1 - 0.5, 1e-6);
    EXPECT_EQ(model.value(model.frozen), 1);
  }
}

// Biases adapt too, as in Apex; the local rate is compared with the multiplied rate.
TEST(Optimizer, LarcLimitsTheRateOfEachParameter) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.5f});
    OptimizerModel model(
        *context, {.update = {.rule = UpdateRule::sgd, .trust = 0.1f, .larc = Larc::clip}, .weight_decay = 0.25f},
        0.25f);
    model.store.set_multipliers("last", {.rate = 0.125f});
    model.optimizer->step();
    EXPECT_NEAR(model.value(model.first), 1 - 0.1 / 0.5 * 0.5, 1e-6);
    EXPECT_NEAR(model.value(model.bias), 1 - 0.1 / 0.25 * 0.25, 1e-6);
    EXPECT_NEAR(model.value(model.last), 1 - 0.5 * 0.125 * 0.5, 1e-6) << "0.2 is above its rate";
    EXPECT_EQ(model.value(model.frozen), 1);
  }
}

TEST(Optimizer, LarsDecaysBiasesAtTheRateItselfWhereAllParametersDecay) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 1});
    OptimizerModel model(
        *context, {.update = {.rule = UpdateRule::lars, .momentum = 0}, .weight_decay = 0.5f, .decays_all = true},
        0.25f);
    model.optimizer->step();
    EXPECT_EQ(model.value(model.bias), 1 - (0.25 + 0.5));
  }
}

TEST(Optimizer, LarsTakesTheMultipliedDecayIntoItsRatio) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 1});
    OptimizerModel model(
        *context, {.update = {.rule = UpdateRule::lars, .momentum = 0, .trust = 0.01f}, .weight_decay = 0.5f}, 0.25f);
    model.store.set_multipliers("first", {.rate = 3, .weight_decay = 0.5f});
    model.store.set_multipliers("last", {.weight_decay = 0});
    model.optimizer->step();
    EXPECT_NEAR(model.value(model.first), 1 - 3 * 0.01 / (0.25 + 0.25) * (0.25 + 0.25), 1e-6);
    EXPECT_NEAR(model.value(model.last), 1 - 0.01 / 0.25 * 0.25, 1e-6);
    EXPECT_EQ(model.value(model.bias), 1 - 0.25);
  }
}

TEST(Optimizer, AveragesWhatIsTrained) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 1});
    const UpdateOptions update{.rule = UpdateRule::sgd, .average_decay = 0.75f, .average_warmup = false};
    EXPECT_FALSE(OptimizerModel(*context, {.update = update}, 1).optimizer->average());
    OptimizerModel model(*context, {.update = update, .averages = true}, 1);
    const auto average = [&](const Parameter* parameter) {
      return to_host(*context, model.optimizer->average())[parameter->offset];
    };
    EXPECT_EQ(average(model.first), 1);
    model.optimizer->step();  // to 0
    EXPECT_EQ(average(model.first), 0.75);
    EXPECT_EQ(average(model.frozen), 1);
    model.store.freeze("first");
    model.optimizer->step();
    EXPECT_EQ(average(model.first), 0.75);
    EXPECT_EQ(average(model.last), 0.75 * 0.75 - 0.25);
    with_average(model.store, model.optimizer->average(), [&] {
      EXPECT_EQ(model.value(model.first), 0.75);
      EXPECT_EQ(model.value(model.frozen), 1);
    });
    EXPECT_THROW(with_average(model.store, model.optimizer->average(), [] { throw Error("no"); }), Error);
    EXPECT_EQ(model.value(model.first), 0);
    EXPECT_EQ(model.value(model.last), -1);
    model.optimizer->restart_average();
    EXPECT_EQ(average(model.last), -1);
  }
}

}  // namespace
}  // namespace dtrain
