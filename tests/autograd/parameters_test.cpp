// ParameterStore: arena layout, initial values, names.
#include "dtrain/autograd/parameters.h"

#include <algorithm>
#include <cmath>

#include "dtrain/layers.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kStep = kAlignment / sizeof(float);

TEST(ParameterStore, LaysTheArenasOutInOrderOfRegistration) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    Parameter& a = store.add("a", {3, 5}, Init::constant(2));
    Parameter& b = store.add("b", {kStep}, Init::constant(3), {.decay = false});
    Parameter& c = store.add("c", {1}, Init::constant(4), {.frozen = true});
    Buffer& mean = store.add_buffer("mean", {6}, 5);
    Buffer& var = store.add_buffer("var", {6}, 1);
    store.allocate(0);
    EXPECT_EQ(a.offset, 0);
    EXPECT_EQ(b.offset, kStep);
    EXPECT_EQ(c.offset, 2 * kStep);
    EXPECT_EQ(store.values().count(), 3 * kStep);
    EXPECT_EQ(store.grads().count(), 3 * kStep);
    EXPECT_EQ(var.offset, kStep);
    EXPECT_EQ(store.parameter_count(), 15 + kStep + 1);
    const Array values = to_host(*context, store.values());
    for (int64_t i = 0; i < values.count(); ++i) {
      const double expected = i < 15 ? 2 : i < kStep ? 0 : i < 2 * kStep ? 3 : i == 2 * kStep ? 4 : 0;
      EXPECT_EQ(values[i], expected) << i;
    }
    EXPECT_EQ(to_host(*context, mean.value).values, std::vector<double>(6, 5));
    EXPECT_EQ(a.value.shape(), (Shape{3, 5}));
    EXPECT_EQ(a.compute.raw(), a.value.raw());
    EXPECT_EQ(static_cast<char*>(b.grad.raw()) - static_cast<char*>(store.grads().raw()), kAlignment);
  }
}

TEST(ParameterStore, FiltersOverImagesArePaddedWithZeroChannels) {
  for (const auto& context : devices()) {
    poison(*context);
    ParameterStore store(*context);
    const Parameter& stem = store.add("stem", {5, 3, 2, 3}, Init::normal(1), {.layout = Layout::krsc});
    const Parameter& inner = store.add("inner", {5, 3, 2, 4}, Init::normal(1), {.layout = Layout::krsc});
    store.allocate(1, {.image_channels = 4});
    EXPECT_EQ(inner.compute.raw(), inner.value.raw());
    EXPECT_EQ(stem.compute.shape(), (Shape{5, 3, 2, 4}));
    const auto expect_padded = [&] {
      const Array value = to_host(*context, stem.value), compute = to_host(*context, stem.compute);
      for (int64_t tap = 0; tap < 30; ++tap)
        for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(compute[4 * tap + c], c < 3 ? value[3 * tap + c] : 0) << tap;
    };
    expect_padded();
    context->upload(std::vector<float>(90, 2.5f).data(), stem.value);
    const uint64_t version = store.version();
    store.refresh_compute();
    EXPECT_GT(store.version(), version);
    expect_padded();
    context->upload(std::vector<float>(90, 3.5f).data(), stem.value);
    store.refresh_padded();
    expect_padded();
  }
}

TEST(ParameterStore, RefusesToComputeInWhatTheDeviceCannot) {
  const auto context = make_cpu_context();
  const auto allocate = [&](const ComputeOptions& options) {
    return [&context, options] { ParameterStore(*context).allocate(0, options); };
  };
  expect_error(allocate({.dtype = DType::f16}), Fault::config, "compute in f16 on cpu");
  expect_error(allocate({.dtype = DType::i32}), Fault::config, "compute in i32");
  expect_error(allocate({.image_channels = 2}), Fault::config, "images of 2 channels");
}

TEST(ParameterStore, SaysThatAProcessorHasNoProductsOfBf16) {
  for (const CpuIsa isa : {CpuIsa::avx2, best_cpu_isa()}) {
    const auto context = make_cpu_context({.threads = 1, .isa = isa});
    ParameterStore(*context).allocate(0, {.dtype = DType::bf16});
    ParameterStore(*context).allocate(0);
    const std::vector<std::string>& notices = context->notices();
    ASSERT_EQ(notices.size(), isa >= CpuIsa::avx512_bf16 ? 0u : 1u);
    for (const std::string& notice : notices)
      EXPECT_TRUE(notice.starts_with(concat("bf16 on ", name_of(isa)))) << notice;
  }
}

TEST(ParameterStore, OptimizerStateIsLaidOutAlikeAndZero) {
  for (const auto& context : devices()) {
    poison(*context);
    ParameterStore store(*context);
    store.add("w", {7}, Init::constant(1));
    store.allocate(0);
    EXPECT_EQ(store.optimizer_states(), 0);
    const Tensor second = store.optimizer_state(1);
    EXPECT_EQ(store.optimizer_states(), 2);
    EXPECT_EQ(to_host(*context, second).values, std::vector<double>(kStep, 0));
    EXPECT_EQ(store.optimizer_state(1).raw(), second.raw());
    EXPECT_EQ(to_host(*context, store.grads()).values, std::vector<double>(kStep, 0));
  }
}

std::vector<float> initial(Init init, uint64_t seed, const std::string& name, bool with_another) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  if (with_another) store.add("another", {50}, Init::normal(1));
  const Parameter& parameter = store.add(name, {20000}, init);
  store.allocate(seed);
  return values_of<float>(*context, parameter.value);
}

TEST(ParameterStore, InitialValuesDependOnSeedAndNameOnly) {
  const auto values = initial(Init::normal(1), 1, "w", false);
  EXPECT_EQ(values, initial(Init::normal(1), 1, "w", true));
  EXPECT_NE(values, initial(Init::normal(1), 2, "w", false));
  EXPECT_NE(values, initial(Init::normal(1), 1, "v", false));
}

TEST(ParameterStore, InitialDistributions) {
  auto moments = [](const std::vector<float>& values) {
    double sum = 0, squares = 0;
    for (float value : values) sum += value, squares += static_cast<double>(value) * value;
    const auto count = static_cast<double>(values.size());
    return std::pair(sum / count, std::sqrt(squares / count));
  };
  const auto [normal_mean, normal_deviation] = moments(initial(Init::normal(0.1f), 3, "w", false));
  EXPECT_NEAR(normal_mean, 0, 0.004);
  EXPECT_NEAR(normal_deviation, 0.1, 0.002);
  const auto truncated = initial(Init::truncated_normal(0.1f), 3, "w", false);
  EXPECT_LE(std::abs(*std::max_element(truncated.begin(), truncated.end())), 0.2f);
  EXPECT_NEAR(moments(truncated).second, 0.088, 0.002);  // normal truncated at two deviations: 0.8796
  const auto uniform = initial(Init::uniform(0.3f), 3, "w", false);
  EXPECT_LE(std::abs(*std::min_element(uniform.begin(), uniform.end())), 0.3f);
  EXPECT_NEAR(moments(uniform).second, 0.3 / std::sqrt(3.0), 0.003);
}

TEST(ParameterStore, RefusesAParameterThatNothingSaysTheBeginningOf) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  expect_error([&] { store.add("w", {1}, {}); }, Fault::config,
               "parameter w: no initialisation; expected Init::normal()");
  expect_error([&] { Linear(store, "fc", 2, 3, {}); }, Fault::config, "parameter fc.weight: no initialisation");
  const Conv2d usual(store, "usual", 3, 4, 3, {}), zeros(store, "zeros", 3, 4, 3, {.init = Init::constant(0)});
  store.allocate(1);
  EXPECT_GT(largest(to_host(*context, usual.weight->value)), 0);
  EXPECT_EQ(largest(to_host(*context, zeros.weight->value)), 0) << "not the usual choice, which was not asked for";
}

TEST(ParameterStore, Names) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  Parameter& w = store.add("w", {1}, Init::constant(0));
  store.add_buffer("mean", {1}, 0);
  EXPECT_EQ(store.find("w"), &w);
  EXPECT_EQ(store.find("mean"), nullptr);
  EXPECT_NE(store.find_buffer("mean"), nullptr);
  EXPECT_EQ(store.find_buffer("w"), nullptr);
  expect_error([&] { store.add("w", {1}, Init::constant(0)); }, Fault::config, "w: registered twice");
  expect_error([&] { store.add("mean", {1}, Init::constant(0)); }, Fault::config, "mean: registered twice");
  expect_error([&] { store.add_buffer("w", {1}, 0); }, Fault::config, "w: registered twice");
  expect_error([&] { store.optimizer_state(0); }, Fault::config, "before allocate()");
  const uint64_t version = store.version();
  store.allocate(0);
  EXPECT_GT(store.version(), version);
  expect_error([&] { store.add("v", {1}, Init::constant(0)); }, Fault::config, "after allocate()");
  expect_error([&] { store.add_buffer("v", {1}, 0); }, Fault::config, "after allocate()");
  expect_error([&] { store.allocate(0); }, Fault::config, "twice");
}

TEST(ParameterStore, HasNoArenasBeforeAllocate) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  store.add("w", {1}, Init::constant(0));
  EXPECT_FALSE(store.allocated());
  expect_error([&] { store.values(); }, Fault::config, "values() before allocate()");
  expect_error([&] { store.grads(); }, Fault::config, "grads() before allocate()");
  expect_error([&] { store.buffer_values(); }, Fault::config, "buffer_values() before allocate()");
  expect_error([&] { store.compute_values(); }, Fault::config, "compute_values() before allocate()");
  expect_error([&] { store.refresh_compute(); }, Fault::config, "before allocate()");
  store.allocate(0);
  EXPECT_TRUE(store.allocated());
  expect_error([&] { store.optimizer_state(-1); }, Fault::config, "optimizer_state(-1)");
}

TEST(ParameterStore, MayBeAllocatedOnceMoreWhereMemoryRanOut) {
  const auto context = make_cpu_context({.memory_cap = size_t{24} << 20});
  ParameterStore store(*context);
  const Parameter& w = store.add("w", {2 << 20}, Init::normal(1));
  {
    const Tensor others = context->empty({3 << 20});
    expect_error([&] { store.allocate(1); }, Fault::resource, "");
    EXPECT_FALSE(store.allocated());
  }
  store.allocate(1);
  EXPECT_NE(values_of<float>(*context, w.value)[0], 0);
}

TEST(ParameterStore, RefusesOptionsThatDoNotFit) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const auto add = [&](Shape shape, const ParameterOptions& options) {
    return [&store, shape, options] { store.add("w", shape, Init::constant(0), options); };
  };
  expect_error(add({4, 3, 3}, {.layout = Layout::krsc}), Fault::config, "w: filters of shape [4, 3, 3]");
  expect_error(add({4, 12}, {.layout = Layout::flat}), Fault::config, "over an image of 0 channels");
  expect_error(add({4, 12}, {.layout = Layout::flat, .channels = 5}), Fault::config, "over an image of 5 channels");
  expect_error(add({4}, {.multipliers = {.rate = -1}}), Fault::config, "learning rate multiplied by -1");
  EXPECT_TRUE(store.parameters().empty());
  add({4, 12}, {.layout = Layout::flat, .channels = 4})();
}

TEST(ParameterStore, ForInferenceTakesTheMemoryOfTheValuesAlone) {
  constexpr int64_t kCount = 1 << 20;
  const auto memory_of = [](Context& context, const ComputeOptions& options) {
    const size_t before = context.memory_stats().in_use;
    ParameterStore store(context);
    Parameter& w = store.add("w", {kCount}, Init::constant(1));
    store.add_buffer("mean", {kStep}, 0);
    store.allocate(0, options);
    EXPECT_EQ(store.has_gradients(), options.gradients);
    EXPECT_EQ(w.grad.defined(), options.gradients);
    return context.memory_stats().in_use - before;
  };
  for (const auto& context : devices()) {
    constexpr size_t kArena = kCount * sizeof(float);
    EXPECT_EQ(memory_of(*context, {.gradients = false}), kArena + kAlignment);
    EXPECT_EQ(memory_of(*context, {}), 2 * kArena + kAlignment);
  }
}

TEST(ParameterStore, ForInferenceRefusesWhatNeedsGradients) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    Parameter& w = store.add("w", {3}, Init::constant(1));
    store.allocate(0, {.gradients = false});
    expect_error([&] { store.grads(); }, Fault::config, "grads(): the store was allocated without gradients");
    Tape tape(*context);
    expect_error([&] { tape.leaf(w); }, Fault::config, "parameter w is trainable, but the store was allocated without");
    Tape inference(*context, Mode::eval);
    EXPECT_EQ(to_host(*context, inference.leaf(w).value).values, std::vector<double>(3, 1));
    store.freeze("w");
    EXPECT_FALSE(tape.leaf(w).needs_grad());
  }
}

// Two stages, each with a weight and a buffer.
struct Stages {
  explicit Stages(Context& context) : store(context) {}
  ParameterStore store;
  Parameter &first = store.add("layer1.weight", {3}, Init::constant(1)),
            &tenth = store.add("layer10.weight", {3}, Init::constant(1));
  Buffer &first_mean = store.add_buffer("layer1.running_mean", {3}, 0),
         &tenth_mean = store.add_buffer("layer10.running_mean", {3}, 0, /*constant=*/true);
};

TEST(ParameterStore, FreezesByPrefixOrPredicate) {
  for (const bool allocated : {false, true}) {
    const auto context = make_cpu_context();
    Stages stages(*context);
    ParameterStore& store = stages.store;
    if (allocated) store.allocate(0);
    EXPECT_FALSE(stages.first_mean.constant());
    EXPECT_TRUE(stages.tenth_mean.constant());
    const uint64_t version = store.layout_version();
    store.freeze("layer1.");
    EXPECT_TRUE(stages.first.options().frozen && stages.first_mean.constant());
    EXPECT_FALSE(stages.tenth.options().frozen);
    EXPECT_GT(store.layout_version(), version);
    const uint64_t frozen = store.layout_version();
    store.freeze("layer1.");
    EXPECT_EQ(store.layout_version(), frozen) << "nothing has changed";
    store.freeze([](const std::string& name) { return name.ends_with("weight"); });
    EXPECT_TRUE(stages.tenth.options().frozen);
    store.unfreeze("");
    EXPECT_FALSE(stages.first.options().frozen || stages.tenth.options().frozen);
    EXPECT_FALSE(stages.first_mean.constant() || stages.tenth_mean.constant());
    EXPECT_GT(store.layout_version(), frozen + 1);
  }
}

TEST(ParameterStore, ScopesPutPrefixesBeforeNames) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  {
    const ParameterScope outer(store, "detector.");
    EXPECT_EQ(store.add("a", {1}, Init::constant(0)).name, "detector.a");
    {
      const ParameterScope inner(store, "backbone.");
      EXPECT_EQ(store.add("a", {1}, Init::constant(0)).name, "detector.backbone.a");
      EXPECT_EQ(store.add_buffer("mean", {1}, 0).name, "detector.backbone.mean");
      expect_error([&] { store.add("a", {1}, Init::constant(0)); }, Fault::config,
                   "detector.backbone.a: registered twice");
    }
    EXPECT_EQ(store.add("b", {1}, Init::constant(0)).name, "detector.b");
  }
  EXPECT_EQ(store.add("a", {1}, Init::constant(0)).name, "a");
  EXPECT_NE(store.find("detector.backbone.a"), nullptr);
}

TEST(ParameterStore, RefusesNamesThatNobodyHas) {
  const auto context = make_cpu_context();
  Stages stages(*context);
  ParameterStore& store = stages.store;
  expect_error([&] { store.freeze("layer2."); }, Fault::config, "freeze: there is no parameter and no buffer whose");
  expect_error([&] { store.unfreeze(std::string("fc")); }, Fault::config, "whose name begins with 'fc'");
  expect_error([&] { store.freeze([](const std::string&) { return false; }); }, Fault::config, "the predicate accepts");
  expect_error([&] { store.set_multipliers("layer1.running_mean", {}); }, Fault::config, "there is no parameter whose");
  expect_error([&] { store.set_multipliers("", {.rate = NAN}); }, Fault::config, "rate multiplied by nan");
  expect_error([&] { store.set_multipliers("", {.weight_decay = INFINITY}); }, Fault::config, "weight decay by inf");
  EXPECT_EQ(store.layout_version(), 0u);
}

TEST(ParameterStore, SetsMultipliers) {
  const auto context = make_cpu_context();
  Stages stages(*context);
  ParameterStore& store = stages.store;
  store.set_multipliers("layer1.", {.rate = 0.1f});
  EXPECT_EQ(stages.first.options().multipliers, (Multipliers{0.1f, 1}));
  EXPECT_EQ(stages.tenth.options().multipliers, Multipliers{});
  const uint64_t version = store.layout_version();
  store.set_multipliers("layer1.", {.rate = 0.1f});
  EXPECT_EQ(store.layout_version(), version);
  store.allocate(0);
  store.set_multipliers("layer", {.weight_decay = 0});
  EXPECT_EQ(stages.first.options().multipliers, (Multipliers{1, 0}));
  EXPECT_GT(store.layout_version(), version);
}

// Gradients from before the freezing must not be reduced or measured.
TEST(ParameterStore, AFrozenParametersGradientIsZero) {
  for (const auto& context : devices()) {
    Stages stages(*context);
    stages.store.allocate(0);
    context->upload(std::vector<float>(3, 7).data(), stages.first.grad);
    context->upload(std::vector<float>(3, 7).data(), stages.tenth.grad);
    stages.store.freeze("layer1.");
    EXPECT_EQ(to_host(*context, stages.first.grad).values, std::vector<double>(3, 0));
    EXPECT_EQ(to_host(*context, stages.tenth.grad).values, std::vector<double>(3, 7));
  }
}

}  // namespace
}  // namespace dtrain
