// What tapes with PreparedWeights compute against the composition of convolution, batch norm, sum and relu.
#include "dtrain/ops/inferred_conv.h"

#include <array>
#include <thread>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/ops/conv_bn_act.h"
#include "dtrain/ops/matmul.h"
#include "dtrain/ops/pointwise.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/ops/forced_algorithms.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct InferredCase {
  std::string name;
  Shape x, w;
  Conv2dOptions conv{};
};

const std::vector<InferredCase> kCases = {
    {"pointwise", {2, 9, 7, 40}, {70, 1, 1, 40}},
    {"more filters than pixels", {1, 3, 5, 24}, {200, 1, 1, 24}},
    {"one filter", {1, 6, 5, 20}, {1, 1, 1, 20}},
    {"pointwise with strides", {2, 9, 8, 64}, {96, 1, 1, 64}, {.stride = {2, 2}}},
    {"window", {2, 11, 10, 32}, {48, 3, 3, 32}, {.stride = {2, 2}, .padding = {1, 1, 1, 1}}},
    {"few tiles", {1, 7, 7, 64}, {64, 3, 3, 64}, {.padding = {1, 1, 1, 1}}},
    {"many tiles", {3, 13, 16, 64}, {64, 3, 3, 64}, {.padding = {1, 1, 1, 1}}},
    {"hundreds of tiles", {16, 15, 14, 64}, {32, 3, 3, 64}, {.padding = {1, 1, 1, 1}}},
    {"dilated", {1, 12, 13, 32}, {33, 3, 2, 32}, {.padding = {2, 1, 0, 3}, .dilation = {2, 3}}},
    {"pixels of three channels", {2, 21, 18, 3}, {64, 7, 7, 3}, {.stride = {2, 2}, .padding = {3, 3, 3, 3}}},
    {"uneven padding of few channels", {1, 6, 9, 5}, {17, 2, 4, 5}, {.padding = {0, 1, 2, 3}}},
    {"few channels, dilated", {1, 9, 9, 4}, {16, 3, 3, 4}, {.padding = {2, 2, 2, 2}, .dilation = {2, 2}}},
};

struct Inputs {
  Tensor x, w, gamma, beta, residual;
  BatchNormState state;

  // Images and filters are of `dtype`, of values that bf16 has.
  Inputs(Context& context, const InferredCase& test, DType dtype = DType::f32) {
    const Shape channels{test.w[0]};
    const auto drawn = [&](const Shape& shape, uint64_t seed, float low = -1, float high = 1) {
      return to_device(context, random_array(shape, seed, low, high));
    };
    const auto image = [&](const Shape& shape, uint64_t seed) {
      return to_device(context, rounded(random_array(shape, seed), DType::bf16), dtype);
    };
    x = image(test.x, 11), w = image(test.w, 12), residual = image(conv2d_shape(test.x, test.w, test.conv), 15);
    gamma = drawn(channels, 13, 0.5f, 2), beta = drawn(channels, 14);
    state = {drawn(channels, 16), drawn(channels, 17, 0.5f, 2)};
  }

  ConvBnActLayer layer_of(Tape& tape, const InferredCase& test) const {
    return {tape.constant(w), test.conv, tape.constant(gamma), tape.constant(beta), state, {}, Activation::relu};
  }
  Tensor conv_bn_act_of(Tape& tape, const InferredCase& test, Activation activation, bool adds) const {
    const Var sum = tape.constant(residual);
    return conv_bn_act(tape, tape.constant(x), tape.constant(w), test.conv, tape.constant(gamma), tape.constant(beta),
                       state, {}, activation, adds ? &sum : nullptr)
        .value;
  }
  Tensor conv2d_of(Tape& tape, const InferredCase& test) const {
    const Var bias = tape.constant(beta);
    return conv2d(tape, tape.constant(x), tape.constant(w), &bias, test.conv).value;
  }
};

// Largest difference over the largest value.
double relative_difference(const Array& found, const Array& expected) {
  double difference = 0, scale = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    difference = std::max(difference, std::abs(double{found.values[i]} - expected.values[i]));
    scale = std::max(scale, std::abs(double{expected.values[i]}));
  }
  EXPECT_GT(scale, 0);
  return difference / scale;
}

// Against the composition in f32. In bf16, weights are rounded once more after the norm's scale is folded into them.
void expect_agreement(const InferredCase& test, DType dtype, Context& context) {
  const auto reference = make_cpu_context();
  const Inputs exact(*reference, test), inputs(context, test, dtype);
  const ParameterStore store(context);
  PreparedWeights prepared(store);
  for (const auto& [activation, adds] : {std::pair(Activation::none, false), std::pair(Activation::relu, true)}) {
    Tape plain(*reference, Mode::eval), first(context, prepared), second(context, prepared);
    const Array expected = to_host(*reference, exact.conv_bn_act_of(plain, test, activation, adds));
    poison(context);
    const Tensor found = inputs.conv_bn_act_of(first, test, activation, adds);
    EXPECT_EQ(found.dtype(), dtype);
    const double bound = dtype == DType::f32 ? 1e-5 : bounds_of(dtype).value;  // Winograd rounds more than sums do
    EXPECT_LT(relative_difference(to_host(context, found), expected), bound);
    EXPECT_EQ(to_host(context, found).values,
              to_host(context, inputs.conv_bn_act_of(second, test, activation, adds)).values);
  }
}

TEST(InferredConv, AgreesWithTheComposition) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::set<std::string> names;
    for (const InferredCase& test : kCases) {
      for (const auto& [isa, algorithm, context] : forced_contexts(test.x, test.w, test.conv, dtype)) {
        SCOPED_TRACE(concat(dtype, " ", test.name, " ", name_of(isa), " ", algorithm));
        expect_agreement(test, dtype, *context);
        names.insert(algorithm);
      }
      SCOPED_TRACE(concat(dtype, " ", test.name));
      expect_agreement(test, dtype, *make_cpu_context({.threads = 2}));
    }
    expect_all_algorithms(names, kCases[0].x, kCases[0].w, dtype);
  }
}

// A residual that is given up becomes the result where nobody else has it, to the same bits.
TEST(InferredConv, TakesAResidualThatNobodyElseHas) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const InferredCase& test : kCases) {
      SCOPED_TRACE(concat(dtype, " ", test.name));
      const auto context = context_of(best_cpu_isa());
      const Inputs inputs(*context, test, dtype);
      const ParameterStore store(*context);
      PreparedWeights prepared(store);
      Tape tape(*context, prepared);
      const ConvBnActLayer layer = inputs.layer_of(tape, test);
      const Var x = tape.constant(inputs.x), kept = tape.constant(inputs.residual);
      const Array expected = to_host(*context, conv_bn_act(tape, x, {&layer, 1}, &kept).value);
      const Array before = to_host(*context, inputs.residual);

      Var shared = kept;
      const Tensor beside = conv_bn_act(tape, x, {&layer, 1}, std::move(shared)).value;
      EXPECT_EQ(to_host(*context, beside).values, expected.values);
      EXPECT_EQ(to_host(*context, inputs.residual).values, before.values);

      Var alone = tape.constant(to_device(*context, before, dtype));
      const void* const memory = alone.value.raw();
      const Tensor found = conv_bn_act(tape, x, {&layer, 1}, std::move(alone)).value;
      EXPECT_EQ(to_host(*context, found).values, expected.values);
      EXPECT_EQ(found.raw() == memory, is_inferred(tape, x, test.conv));
    }
}

// The images of an identity are its residual as well: they are read until the first layer is done.
TEST(InferredConv, TakesTheImagesOfAnIdentityAfterItsFirstLayer) {
  const auto context = context_of(best_cpu_isa());
  const InferredCase test{"identity", {2, 9, 8, 64}, {64, 3, 3, 64}, {.padding = {1, 1, 1, 1}}};
  const Inputs inputs(*context, test);
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  Tape tape(*context, prepared);
  const ConvBnActLayer layer = inputs.layer_of(tape, test);
  for (const size_t count : {1, 2, 3}) {
    const std::vector<ConvBnActLayer> layers(count, layer);
    const Var kept = tape.constant(inputs.x);
    const Array expected = to_host(*context, conv_bn_act(tape, kept, layers, &kept).value);
    Var x = tape.constant(to_device(*context, to_host(*context, inputs.x)));
    const void* const memory = x.value.raw();
    Var residual = x;
    const Tensor found = conv_bn_act(tape, std::move(x), layers, std::move(residual)).value;
    EXPECT_EQ(to_host(*context, found).values, expected.values) << count;
    EXPECT_EQ(found.raw() == memory, count > 1) << count;
  }
}

TEST(InferredConv, OfALinearLayerAgreesWithThePlainOne) {
  const auto context = context_of(best_cpu_isa());
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, in, out] : {std::array{5, 33, 70}, std::array{1, 64, 9}, std::array{0, 8, 4}}) {
      SCOPED_TRACE(concat(dtype, " ", rows, " x ", in, " -> ", out));
      const auto drawn = [&](const Shape& shape, uint64_t seed) {
        return to_device(*context, rounded(random_array(shape, seed), DType::bf16), dtype);
      };
      const ParameterStore store(*context);
      PreparedWeights prepared(store);
      Tape plain(*context, Mode::eval), tape(*context, prepared);
      const Tensor x = drawn({rows, in}, 1), w = drawn({out, in}, 2);
      const Tensor bias = to_device(*context, random_array({out}, 3));
      for (const bool adds : {false, true}) {
        const auto of = [&](Tape& t) {
          const Var b = t.constant(bias);
          return linear(t, t.constant(x), t.constant(w), adds ? &b : nullptr).value;
        };
        const Tensor found = of(tape), expected = of(plain);
        EXPECT_EQ(found.dtype(), dtype);
        EXPECT_EQ(found.shape(), expected.shape());
        if (rows == 0) continue;
        EXPECT_LT(relative_difference(to_host(*context, found), to_host(*context, expected)),
                  dtype == DType::f32 ? 1e-6 : bounds_of(DType::bf16).value);
      }
    }
}

TEST(InferredConv, AddsABias) {
  for (const InferredCase& test : kCases) {
    SCOPED_TRACE(test.name);
    const auto context = context_of(best_cpu_isa());
    const Inputs inputs(*context, test);
    const ParameterStore store(*context);
    PreparedWeights prepared(store);
    Tape plain(*context, Mode::eval), tape(*context, prepared);
    EXPECT_LT(relative_difference(to_host(*context, inputs.conv2d_of(tape, test)),
                                  to_host(*context, inputs.conv2d_of(plain, test))),
              2e-6);
  }
}

TEST(InferredConv, SharedFiltersMayHaveNormsOfTheirOwn) {
  const InferredCase& test = kCases.front();
  const auto context = context_of(best_cpu_isa());
  Inputs inputs(*context, test);
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  Tape plain(*context, Mode::eval), tape(*context, prepared);
  inputs.conv_bn_act_of(tape, test, Activation::none, false);
  inputs.gamma = to_device(*context, random_array({test.w[0]}, 23, 0.5f, 2));
  EXPECT_LT(relative_difference(to_host(*context, inputs.conv_bn_act_of(tape, test, Activation::none, false)),
                                to_host(*context, inputs.conv_bn_act_of(plain, test, Activation::none, false))),
            2e-6);
}

TEST(InferredConv, GroupsAreLeftToOthers) {
  const auto context = context_of(best_cpu_isa());
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  Tape tape(*context, prepared), plain(*context, Mode::eval);
  const Var x = tape.constant(context->zeros({1, 4, 4, 8}));
  EXPECT_TRUE(is_inferred(tape, x, {}));
  EXPECT_FALSE(is_inferred(tape, x, {.groups = 2}));
  EXPECT_FALSE(is_inferred(plain, x, {}));
  EXPECT_FALSE(tape.training());
}

TEST(InferredConv, SeveralThreadsPrepareOnce) {
  const InferredCase& test = kCases[6];
  const auto context = context_of(best_cpu_isa());
  const Inputs inputs(*context, test);
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  std::vector<Array> found(4);
  {
    std::vector<std::jthread> threads;
    for (Array& result : found)
      threads.emplace_back([&] {
        Tape tape(*context, prepared);
        result = to_host(*context, inputs.conv_bn_act_of(tape, test, Activation::relu, true));
      });
  }
  for (const Array& result : found) EXPECT_EQ(result.values, found.front().values);
}

// A server that loads newer weights into the same store.
TEST(InferredConv, FollowsTheValuesOfTheStore) {
  const auto context = context_of(best_cpu_isa());
  ParameterStore store(*context);
  Parameter& w = store.add("w", {3, 4}, Init::constant(1));
  Parameter& b = store.add("b", {3}, Init::constant(0));
  store.allocate(1);
  const Tensor x = to_device(*context, random_array({2, 4}, 1));
  PreparedWeights prepared(store);
  const auto rows = [&](Tape& tape) {
    const Var bias = tape.leaf(b);
    return to_host(*context, linear(tape, tape.constant(x), tape.leaf(w), &bias).value).values;
  };
  const auto inferred = [&] {
    Tape tape(*context, prepared);
    return rows(tape);
  };
  const std::vector<double> before = inferred();
  const auto expect_new_values = [&] {
    Tape plain(*context, Mode::eval);
    const std::vector<double> expected = rows(plain), found = inferred();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
    EXPECT_NE(found, before);
  };
  for (float& value : w.value.span<float>()) value = 3;
  store.touch();
  expect_new_values();
  for (float& value : b.value.span<float>()) value = 5;
  store.refresh_compute();
  expect_new_values();
}

TEST(InferredConv, RefusesAResidualOfAnotherShape) {
  const InferredCase& test = kCases.front();
  const auto context = context_of(best_cpu_isa());
  Inputs inputs(*context, test);
  inputs.residual = context->zeros({1, 2, 3, 4});
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  Tape tape(*context, prepared);
  EXPECT_THROW(inputs.conv_bn_act_of(tape, test, Activation::none, true), Error);
}

TEST(InferredConv, RefusesABatchNormOfOtherChannels) {
  const InferredCase& test = kCases.front();
  const auto context = context_of(best_cpu_isa());
  Inputs inputs(*context, test);
  inputs.state.running_var = context->zeros({test.w[0] - 1});
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  Tape tape(*context, prepared);
  EXPECT_THROW(inputs.conv_bn_act_of(tape, test, Activation::none, false), Error);
}

}  // namespace
}  // namespace dtrain
