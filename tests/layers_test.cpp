// Layers: arguments that they pass to ops.
#include "dtrain/layers.h"

#include <cmath>

#include "dtrain/ops/conv_transpose2d.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// With non-initial gamma and running statistics.
struct Normalised {
  Normalised(Context& context, const BatchNormOptions& options) : store(context), bn(store, "bn", 5, options) {
    store.allocate(0);
    for (const auto& [tensor, seed] :
         {std::pair{bn.gamma->value, 1}, {bn.running_mean->value, 2}, {bn.running_var->value, 3}})
      context.copy(to_device(context, random_array({5}, static_cast<uint64_t>(seed), 0.5f, 2)), tensor);
  }
  // Output for fixed images.
  std::vector<double> forward() {
    Tape tape(store.context());
    return to_host(store.context(), bn(tape, tape.constant(images())).value).values;
  }
  // The same by the op, with the current running statistics.
  std::vector<double> frozen_op() {
    Tape tape(store.context());
    return to_host(store.context(), batch_norm(tape, tape.constant(images()), tape.leaf(*bn.gamma), tape.leaf(*bn.beta),
                                               bn.state(), {.frozen = true})
                                        .value)
        .values;
  }
  Tensor images() { return to_device(store.context(), random_array({2, 3, 4, 5}, 9)); }
  std::vector<double> statistics() { return to_host(store.context(), store.buffer_values()).values; }

  ParameterStore store;
  BatchNorm bn;
};

TEST(BatchNorm, UsesAndKeepsFrozenStatisticsInTraining) {
  for (const auto& context : devices())
    for (const bool from_the_start : {true, false}) {
      Normalised model(*context, {.frozen = from_the_start});
      if (!from_the_start) {
        EXPECT_NE(model.forward(), model.frozen_op());
        model.store.freeze("bn.running_");
      }
      EXPECT_FALSE(model.bn.gamma->options().frozen);
      EXPECT_TRUE(model.bn.running_mean->constant() && model.bn.running_var->constant());
      const auto statistics = model.statistics();
      EXPECT_EQ(model.forward(), model.frozen_op());
      EXPECT_EQ(model.statistics(), statistics);
      model.store.unfreeze("bn.");
      EXPECT_NE(model.forward(), model.frozen_op());
      EXPECT_NE(model.statistics(), statistics);
    }
}

TEST(BatchNorm, IsFrozenAsAPartOfOtherOpsToo) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const std::vector<ConvBnAct> layers{{{store, "conv1", 3, 5, 3, {}}, {store, "bn1", 5}},
                                        {{store, "conv2", 5, 4, 1, {}}, {store, "bn2", 4}}};
    store.allocate(1);
    const auto run = [&] {
      Tape tape(*context);
      const Var x = tape.constant(to_device(*context, random_array({2, 8, 8, 3}, 9)));
      conv_bn_act(tape, x, layers);
      layers[0](tape, x);
      layers[0].bn.relu_max_pool(tape, layers[0].conv(tape, x));
    };
    store.freeze("bn1.");
    const Array first = to_host(*context, layers[0].bn.running_var->value);
    const Array second = to_host(*context, layers[1].bn.running_var->value);
    run();
    EXPECT_EQ(to_host(*context, layers[0].bn.running_var->value).values, first.values);
    EXPECT_NE(to_host(*context, layers[1].bn.running_var->value).values, second.values);
  }
}

TEST(BatchNorm, RefusesToBeHalfFrozen) {
  const auto context = make_cpu_context();
  Normalised model(*context, {});
  model.store.freeze("bn.running_mean");
  expect_error([&] { model.forward(); }, Fault::config, "of bn.running_mean and bn.running_var one is frozen");
}

TEST(Tape, AParameterIsFrozenFromTheNextForwardPassOn) {
  const auto context = make_cpu_context();
  Normalised model(*context, {});
  for (const bool frozen : {false, true, false}) {
    if (frozen)
      model.store.freeze("bn.weight");
    else
      model.store.unfreeze("bn.weight");
    Tape tape(*context);
    EXPECT_EQ(tape.leaf(*model.bn.gamma).needs_grad(), !frozen);
  }
}

TEST(ConvTranspose2d, IsTheOpOfItsParameters) {
  for (const auto& context : devices())
    for (const bool bias : {true, false}) {
      ParameterStore store(*context);
      const ConvTranspose2d layer(store, "up", 4, 5, 2, {.conv = {.stride = 2}, .bias = bias});
      store.allocate(1);
      EXPECT_EQ(store.parameters().size(), bias ? 2u : 1u);
      EXPECT_EQ(layer.weight->shape, (Shape{4, 2, 2, 5}));
      EXPECT_NEAR(layer.weight->init.value, std::sqrt(2.0 / 16), 1e-6);
      Tape tape(*context);
      const Var x = tape.constant(to_device(*context, random_array({2, 3, 4, 4}, 9)));
      const Var b = bias ? tape.leaf(*layer.bias) : Var{};
      const Var y = conv_transpose2d(tape, x, tape.leaf(*layer.weight), bias ? &b : nullptr, {.stride = 2});
      EXPECT_EQ(to_host(*context, layer(tape, x).value).values, to_host(*context, y.value).values);
      EXPECT_EQ(y.shape(), (Shape{2, 6, 8, 5}));
    }
}

// Filters that write three channels could be confused with filters that read them.
TEST(ConvTranspose2d, RefusesFiltersWithPaddedChannels) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const ConvTranspose2d layer(store, "up", 4, 3, 2, {});
  store.allocate(1, {.image_channels = 4});
  Tape tape(*context);
  expect_error(
      [&] {
        layer(tape, tape.constant(context->zeros({1, 3, 3, 4})));
      },
      Fault::config, "up.weight: its filters [4, 2, 2, 3] are read as [4, 2, 2, 4]");
}

}  // namespace
}  // namespace dtrain
