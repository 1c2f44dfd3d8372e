// Optimizer over a ParameterStore: which parameters are updated and decayed.
#include "dtrain/train/optimizer.h"

#include <cmath>
#include <optional>

#include "tests/train/optimizer_fixture.h"

namespace dtrain {
namespace {

using Values = std::vector<double>;

const UpdateRule kRules[] = {UpdateRule::sgd,  UpdateRule::momentum, UpdateRule::nesterov, UpdateRule::adamw,
                             UpdateRule::adam, UpdateRule::rmsprop,  UpdateRule::lars,     UpdateRule::lamb};

TEST(Optimizer, DecaysWeightsOnlyAndLeavesFrozenOnes) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.5f});
    OptimizerModel model(*context, {.update = {.rule = UpdateRule::sgd}, .weight_decay = 0.25f}, 0.125f);
    const uint64_t version = model.store.version();
    model.optimizer->step();
    EXPECT_EQ(model.value(model.first), 1 - 0.5 * (0.125 + 0.25));
    EXPECT_EQ(model.value(model.last), 1 - 0.5 * (0.125 + 0.25));
    EXPECT_EQ(model.value(model.bias), 1 - 0.5 * 0.125);
    EXPECT_EQ(model.value(model.frozen), 1);
    EXPECT_GT(model.store.version(), version);
    // 90 + 30 + 70 trained elements
    EXPECT_NEAR(model.optimizer->gradient_norm(), 0.125 * std::sqrt(190.0), 1e-5);
  }
}

// As PyTorch's optimisers, which have no exceptions.
TEST(Optimizer, DecaysBiasesTooWhereAllParametersDecay) {
  const OptimizerOptions options{.update = {.rule = UpdateRule::sgd}, .weight_decay = 0.25f, .decays_all = true};
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.5f});
    OptimizerModel model(*context, options, 0.125f);
    model.store.set_multipliers("last", {.weight_decay = 2});
    model.store.set_multipliers("bias", {.weight_decay = 3});
    EXPECT_EQ(model.optimizer->l2_loss(), 0.25f / 2 * (3 * 30 + 3 * 30 + 2 * 70));
    model.optimizer->step();
    EXPECT_EQ(model.value(model.first), 1 - 0.5 * (0.125 + 0.25));
    EXPECT_EQ(model.value(model.bias), 1 - 0.5 * (0.125 + 3 * 0.25));
    EXPECT_EQ(model.value(model.last), 1 - 0.5 * (0.125 + 2 * 0.25));
    EXPECT_EQ(model.value(model.frozen), 1);
  }
}

TEST(Optimizer, L2LossIsOfTheDecayedWeights) {
  for (const auto& context : devices()) {
    OptimizerModel model(*context, {.weight_decay = 0.25f}, 1);
    EXPECT_EQ(model.optimizer->l2_loss(), 0.25f / 2 * (3 * 30 + 70));
    EXPECT_EQ(OptimizerModel(*context, {}, 1).optimizer->l2_loss(), 0.0f);
  }
}

TEST(Optimizer, PaddingStaysZeroUnderEveryRule) {
  for (const auto& context : devices())
    for (const UpdateRule rule : kRules) {
      OptimizerModel model(*context, {.update = {.rule = rule}, .weight_decay = 0.1f}, 1);
      for (uint64_t step = 0; step < 3; ++step) {
        context->set_scalars({.learning_rate = 0.1f, .step = step});
        model.optimizer->step();
      }
      EXPECT_LT(model.value(model.first), 1);
      EXPECT_LT(model.value(model.bias), 1);
      Array rest = to_host(*context, model.store.values());
      for (const Parameter& parameter : model.store.parameters())
        for (int64_t i = 0; i < parameter.shape.count(); ++i) rest[parameter.offset + i] = 0;
      EXPECT_EQ(rest.values, Values(rest.values.size(), 0)) << static_cast<int>(rule);
    }
}

// TensorFlow's RMSProp starts from mean squares of 1; a restored state is not reset.
TEST(Optimizer, RmspropStartsFromOne) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.1f});
    const OptimizerOptions options{.update = {.rule = UpdateRule::rmsprop, .momentum = 0, .epsilon = 1e-3f}};
    OptimizerModel model(*context, options, 2);
    model.optimizer->step();
    const double squares = 0.9 + 0.1 * 4;
    EXPECT_NEAR(model.value(model.first), 1 - 0.1 * 2 / std::sqrt(squares + 1e-3), 1e-6);
    Optimizer again(model.store, options);
    EXPECT_NEAR(to_host(*context, model.store.optimizer_state(1))[0], squares, 1e-6);
  }
}

TEST(Optimizer, AGradientThatIsNotFiniteChangesNothing) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.1f});
    OptimizerModel model(*context, {.update = {.rule = UpdateRule::adamw}, .weight_decay = 0.1f}, NAN);
    model.optimizer->step();
    EXPECT_EQ(model.value(model.first), 1);
    EXPECT_EQ(context->get_scalars().finite, 0);
    EXPECT_FALSE(std::isfinite(model.optimizer->gradient_norm()));
  }
}

// The gradient range of a frozen parameter may hold anything.
TEST(Optimizer, AFrozenParameterDoesNotCountAsNotFinite) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.1f});
    OptimizerModel model(*context, {}, 1);
    context->upload(std::vector<float>(5, NAN).data(), model.frozen->grad);
    model.optimizer->step();
    EXPECT_EQ(context->get_scalars().finite, 1);
    EXPECT_LT(model.value(model.last), 1);
  }
}

// Every compute copy is its value rounded to nearest, with zeros in padded channels.
void expect_copies(const ParameterStore& store, const char* when) {
  for (const Parameter& parameter : store.parameters()) {
    const Array value = rounded(to_host(store.context(), parameter.value), parameter.compute.dtype());
    const Array compute = to_host(store.context(), parameter.compute);
    const int64_t channels = parameter.shape[parameter.shape.rank() - 1];
    const int64_t padded = compute.shape[compute.shape.rank() - 1];
    Array expected(compute.shape);
    for (int64_t i = 0; i < value.count(); ++i) expected[i / channels * padded + i % channels] = value[i];
    EXPECT_EQ(compute.values, expected.values) << parameter.name << ' ' << when;
  }
}

TEST(Optimizer, KeepsTheComputeCopiesUpToDate) {
  for (const auto& context : devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (context->is_cpu() && dtype == DType::f16) continue;
      ParameterStore store(*context);
      const auto normal = Init::normal(1);
      const Parameter& stem = store.add("stem", {5, 3, 3, 3}, normal, {.layout = Layout::krsc});
      const Parameter& conv = store.add("conv", {7, 3, 3, 5}, normal, {.layout = Layout::krsc});
      const Parameter& gamma = store.add("gamma", {7}, normal, {.decay = false});
      store.add("frozen", {3, 7}, normal, {.frozen = true});
      const int channels = dtype == DType::f32 ? 4 : 8;
      store.allocate(3, {dtype, channels});
      EXPECT_EQ(stem.compute.shape(), (Shape{5, 3, 3, channels}));
      for (const Parameter* weight : {&stem, &conv}) EXPECT_EQ(weight->compute.dtype(), dtype);
      EXPECT_EQ(gamma.compute.raw(), gamma.value.raw());
      expect_copies(store, "at first");

      Optimizer optimizer(store, {.weight_decay = 0.1f});
      const std::vector<float> values = values_of<float>(*context, store.values());
      for (uint64_t step = 0; step < 3; ++step) {
        context->set_scalars({.learning_rate = 0.1f, .step = step});
        const Array grads = random_array(store.grads().shape(), step);
        context->copy(to_device(*context, grads), store.grads());
        optimizer.step();
        expect_copies(store, "after a step");
      }
      EXPECT_NE(values_of<float>(*context, store.values()), values);
      // As a load does.
      context->upload(values.data(), store.values());
      store.refresh_compute();
      expect_copies(store, "after a load");
    }
}

// Values that change per step, such as the loss scale, are read on the device.
TEST(Optimizer, ACapturedStepIsTheSame) {
  const auto run = [](Context& context, bool recorded) {
    ParameterStore store(context);
    store.add("stem", {5, 3, 3, 3}, Init::normal(1), {.layout = Layout::krsc});
    store.add("weight", {70, 70}, Init::normal(1));
    store.allocate(3, {.dtype = DType::f16, .image_channels = 8});
    Optimizer optimizer(store, {.update = {.rule = UpdateRule::adamw, .clip_norm = 30}, .weight_decay = 0.1f});
    context.set_step_state({.loss_scale = 64, .double_after = 2});
    std::shared_ptr<cuda::StepGraph> graph;
    for (uint64_t step = 0; step < 6; ++step) {
      context.set_scalars({.learning_rate = 0.1f / static_cast<float>(step + 1), .step = step});
      Array grads = random_array(store.grads().shape(), step, -50, 50);
      if (step == 3) grads[17] = NAN;
      context.copy(to_device(context, grads), store.grads());
      if (!recorded || step == 0) {  // the first loads the kernels
        optimizer.step();
        continue;
      }
      if (!graph) graph = context.capture([&] { optimizer.step(); });
      context.launch(*graph);
    }
    std::vector<Values> result;
    for (const Tensor& tensor :
         {store.values(), store.compute_values(), store.optimizer_state(1), store.find("stem")->compute})
      result.push_back(to_host(context, tensor).values);
    const StepState state = context.get_scalars();
    EXPECT_EQ(state, (StepState{.loss_scale = 128, .double_after = 2, .good_steps = 0, .skipped = 1}));
    return result;
  };
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    EXPECT_EQ(run(*context, false), run(*context, true));
  }
}

TEST(Optimizer, FreezesAndUnfreezesBetweenSteps) {
  for (const auto& context : devices()) {
    OptimizerModel model(*context, {.update = {.rule = UpdateRule::sgd}}, 1);
    const auto step = [&] {
      context->set_scalars({.learning_rate = 0.5f});
      model.optimizer->step();
      return Values{model.value(model.first), model.value(model.bias), model.value(model.frozen),
                    model.value(model.last)};
    };
    EXPECT_EQ(step(), (Values{0.5, 0.5, 1, 0.5}));
    model.store.freeze("first");
    EXPECT_EQ(step(), (Values{0.5, 0, 1, 0}));
    EXPECT_NEAR(model.optimizer->gradient_norm(), 10, 1e-5);  // 30 + 70 trained elements
    context->upload(std::vector<float>(90, 2).data(), model.first->grad);
    context->upload(std::vector<float>(5, 1).data(), model.frozen->grad);
    model.store.unfreeze("f");
    EXPECT_EQ(step(), (Values{-0.5, -0.5, 0.5, -0.5}));
  }
}

// As in PyTorch, where frozen parameters have no gradient.
TEST(Optimizer, AFrozenParameterKeepsItsState) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 1});
    OptimizerModel model(*context, {.update = {.rule = UpdateRule::momentum, .momentum = 0.5f}}, 1);
    model.optimizer->step();
    model.store.freeze("first");
    model.optimizer->step();
    EXPECT_EQ(model.value(model.first), 0);
    model.store.unfreeze("first");
    model.optimizer->step();  // its gradient is zero, its momentum 1
    EXPECT_EQ(model.value(model.first), -0.5);
  }
}

// Halves are exact: half the rate by multiplier or schedule gives the same bits under every rule.
TEST(Optimizer, AMultipliedRateIsARate) {
  const auto run = [](Context& context, UpdateRule rule, float rate, const Multipliers& multipliers) {
    OptimizerModel model(context, {.update = {.rule = rule}, .weight_decay = 0.1f}, 0.3f);
    if (multipliers != Multipliers{}) model.store.set_multipliers("", multipliers);
    for (uint64_t step = 0; step < 3; ++step) {
      context.set_scalars({.learning_rate = rate, .step = step});
      model.optimizer->step();
    }
    return to_host(context, model.store.values()).values;
  };
  for (const auto& context : devices())
    for (const UpdateRule rule : kRules) {
      EXPECT_EQ(run(*context, rule, 0.3f, {.rate = 0.5f}), run(*context, rule, 0.15f, {}));
      EXPECT_NE(run(*context, rule, 0.3f, {.rate = 0.5f}), run(*context, rule, 0.3f, {}));
    }
}

TEST(Optimizer, MultipliesRateAndDecayPerParameter) {
  for (const auto& context : devices())
    for (const bool before : {true, false}) {
      context->set_scalars({.learning_rate = 0.5f});
      const OptimizerOptions options{.update = {.rule = UpdateRule::sgd}, .weight_decay = 0.25f};
      OptimizerModel model(*context, options, 0.125f);
      model.store.set_multipliers("first", {.rate = 4});
      model.store.set_multipliers("last", {.weight_decay = 2});
      model.store.set_multipliers("bias", {.rate = 0.5f, .weight_decay = 3});
      if (before) model.optimizer.emplace(model.store, options);
      model.optimizer->step();
      EXPECT_EQ(model.value(model.first), 1 - 4 * 0.5 * (0.125 + 0.25));
      EXPECT_EQ(model.value(model.last), 1 - 0.5 * (0.125 + 2 * 0.25));
      EXPECT_EQ(model.value(model.bias), 1 - 0.5 * 0.5 * 0.125) << "biases have no decay to be multiplied";
      EXPECT_EQ(model.value(model.frozen), 1);
    }
}

TEST(Optimizer, L2LossFollowsTheMultipliersAndWhatIsFrozen) {
  for (const auto& context : devices()) {
    OptimizerModel model(*context, {.weight_decay = 0.25f}, 1);
    model.store.set_multipliers("last", {.weight_decay = 2});
    EXPECT_EQ(model.optimizer->l2_loss(), 0.25f / 2 * (3 * 30 + 2 * 70));
    model.store.freeze("first");
    EXPECT_EQ(model.optimizer->l2_loss(), 0.25f / 2 * (2 * 70));
  }
}

TEST(Optimizer, RefusesNumbersThatMakeNoUpdate) {
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  store.add("w", {1}, Init::constant(1));
  store.allocate(1);
  const auto expect_refusal = [&](const OptimizerOptions& options, const std::string& part) {
    expect_error([&] { Optimizer(store, options); }, Fault::config, part);
  };
  expect_refusal({.weight_decay = -1}, "weight_decay is -1, expected a finite number that is not negative");
  expect_refusal({.weight_decay = NAN}, "weight_decay is nan");
  expect_refusal({.weight_decay = INFINITY}, "weight_decay is inf");
  expect_refusal({.update = {.momentum = NAN}}, "momentum is nan, expected 0 to 1");
  expect_refusal({.update = {.momentum = 9}}, "momentum is 9");
  expect_refusal({.update = {.beta2 = -0.5f}}, "beta2 is -0.5");
  expect_refusal({.update = {.epsilon = NAN}}, "epsilon is nan");
  expect_refusal({.update = {.clip_norm = -1}}, "clip_norm is -1");
  expect_refusal({.update = {.average_decay = 2}}, "average_decay is 2");
}

TEST(Optimizer, RefusesAStoreWithoutArenas) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  store.add("w", {1}, Init::constant(1));
  for (const UpdateRule rule : kRules)
    expect_error([&] { Optimizer(store, {.update = {.rule = rule}}); }, Fault::config, "expected allocate() before");
  store.allocate(0);
  EXPECT_EQ(&Optimizer(store, {}).store(), &store);
  ParameterStore inference(*context);
  inference.add("w", {1}, Init::constant(1));
  inference.allocate(0, {.gradients = false});
  expect_error([&] { Optimizer(inference, {}); }, Fault::config, "allocated without gradients");
}

// The new plan must be uploaded, which a capture does not allow.
TEST(Optimizer, AChangeOfWhatIsFrozenIsNotCaptured) {
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    OptimizerModel model(*context, {}, 1);
    model.optimizer->step();
    model.store.freeze("first");
    expect_error([&] { context->capture([&] { model.optimizer->step(); }); }, Fault::config,
                 "expected an eager step in between");
    model.optimizer->step();
    EXPECT_TRUE(context->capture([&] { model.optimizer->step(); }));
  }
}

TEST(Optimizer, DescribesItself) {
  const auto context = make_cpu_context();
  auto text = [&](const OptimizerOptions& options) {
    return OptimizerModel(*context, options, 1).optimizer->describe();
  };
  EXPECT_EQ(text({.update = {.rule = UpdateRule::sgd}}), "SGD");
  EXPECT_EQ(text({.update = {.rule = UpdateRule::nesterov}, .weight_decay = 1e-4f}),
            "momentum 0.9 (Nesterov), weight decay 0.0001 except on biases and norms");
  EXPECT_EQ(text({.update = {.rule = UpdateRule::adamw, .clip_norm = 1}}),
            "AdamW (beta1 0.9, beta2 0.999, epsilon 1e-08), gradient norm clipped to 1");
  EXPECT_EQ(text({.update = {.rule = UpdateRule::sgd}, .weight_decay = 1e-4f, .decays_all = true}),
            "SGD, weight decay 0.0001");
  EXPECT_EQ(text({.update = {.rule = UpdateRule::rmsprop, .clip_value = 5}}),
            "RMSProp (decay 0.9, momentum 0.9, epsilon 1e-08), gradients clipped to +-5");
  EXPECT_EQ(text({.update = {.rule = UpdateRule::lars}}), "LARS (momentum 0.9, trust 0.001, epsilon 1e-08)");
  EXPECT_EQ(text({.update = {.rule = UpdateRule::sgd}, .averages = true}),
            "SGD, parameters averaged with decay 0.9999 after a warm-up");
  EXPECT_EQ(text({.update = {.rule = UpdateRule::lamb}}), "LAMB (beta1 0.9, beta2 0.999, epsilon 1e-08)");
  EXPECT_EQ(text({.update = {.larc = Larc::scale, .joint_norm = true}}),
            "momentum 0.9, LARC (scale, joint norm, trust 0.001, epsilon 1e-08)");
}

}  // namespace
}  // namespace dtrain
