#include "dtrain/ops/conv_bn_act.h"

#include "dtrain/ops/pointwise.h"
#include "libdtrain/ops/batch_norm_schedule.h"
#include "libdtrain/ops/conv_bn_fusion.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct CompositeCase {
  std::string name;
  Shape x, w;
  Conv2dOptions conv;
  Activation activation = Activation::relu;
  bool residual = false, frozen = false;
  Mode mode = Mode::train;
};

// y, the running statistics, and in training the gradients of x, w, gamma, beta and the residual.
using Outcome = std::vector<Array>;

Var plain_composition(Tape& tape, const CompositeCase& test, const std::vector<Var>& in, const BatchNormState& state,
                      const BatchNormOptions& bn) {
  Var y = batch_norm(tape, conv2d(tape, in[0], in[1], test.conv), in[2], in[3], state, bn);
  if (test.residual) y = add(tape, y, in[4]);
  return test.activation == Activation::relu ? relu(tape, y) : y;
}

Var composite(Tape& tape, const CompositeCase& test, const std::vector<Var>& in, const BatchNormState& state,
              const BatchNormOptions& bn) {
  return conv_bn_act(tape, in[0], in[1], test.conv, in[2], in[3], state, bn, test.activation,
                     test.residual ? &in[4] : nullptr);
}

// The composite whose batch norm leaves no gradient to the convolution.
Var composite_in_memory(Tape& tape, const CompositeCase& test, const std::vector<Var>& in, const BatchNormState& state,
                        const BatchNormOptions& bn) {
  const ConvWithStatistics conv = conv2d_with_statistics(tape, {in[0]}, in[1], test.conv, 1);
  return batch_norm_with_statistics(tape, conv.y, in[2], in[3], state, bn, test.activation,
                                    test.residual ? &in[4] : nullptr, conv.sums)
      .y;
}

Outcome outcome_of(Context& context, const CompositeCase& test, decltype(composite)& compose,
                   DType dtype = DType::f32) {
  poison(context);
  const Shape y_shape = conv2d_shape(test.x, test.w, test.conv), channels{test.w[0]};
  Tape tape(context, test.mode);
  std::vector<Var> in;
  auto variable = [&](Shape shape, uint64_t seed, float low, float high, DType type, DType gradient) {
    in.push_back(
        tape.variable(to_device(context, rounded(random_array(shape, seed, low, high), type), type), gradient));
  };
  variable(test.x, 11, -1, 1, dtype, dtype);
  variable(test.w, 12, -1, 1, dtype, DType::f32);
  variable(channels, 13, 0.5f, 2, DType::f32, DType::f32);
  variable(channels, 14, -1, 1, DType::f32, DType::f32);
  variable(y_shape, 15, -1, 1, dtype, dtype);
  const BatchNormState state{to_device(context, random_array(channels, 16)),
                             to_device(context, random_array(channels, 17, 0.5f, 2))};
  const BatchNormOptions bn{.frozen = test.frozen};
  const Var y = compose(tape, test, in, state, bn);
  Outcome outcome;
  for (const Tensor& value : {y.value, state.running_mean, state.running_var})
    outcome.push_back(to_host(context, value));
  if (test.mode == Mode::eval) return outcome;
  const Tensor dy = to_device(context, rounded(random_array(y_shape, 18), dtype), dtype);
  tape.backward(tape.record("gradient", context.zeros({1}), {&y},
                            [y = y.without_value(), dy](Tape& t, const Tensor&) { t.pass_grad(y, dy); }));
  for (size_t i = 0; i < (test.residual ? 5u : 4u); ++i) outcome.push_back(to_host(context, tape.grad(in[i])));
  return outcome;
}

TEST(ConvBnAct, EqualsThePlainComposition) {
  for (const auto& context : devices())
    for (const CompositeCase& test : std::vector<CompositeCase>{
             {"1x1", {2, 5, 4, 16}, {24, 1, 1, 16}, {}},
             {"3x3, stride 2", {2, 7, 6, 8}, {17, 3, 3, 8}, {.stride = 2, .padding = 1}},
             {"3x3, residual", {2, 4, 4, 5}, {5, 3, 3, 5}, {.padding = 1}, Activation::relu, true},
             {"no activation", {1, 4, 4, 8}, {32, 1, 1, 8}, {}, Activation::none},
             {"residual, no activation", {1, 4, 4, 8}, {32, 1, 1, 8}, {}, Activation::none, true},
             {"frozen", {2, 5, 5, 4}, {8, 3, 3, 4}, {}, Activation::relu, false, true},
             {"frozen, residual", {2, 5, 5, 4}, {8, 3, 3, 4}, {}, Activation::relu, true, true},
             {"eval", {2, 5, 5, 4}, {8, 3, 3, 4}, {}, Activation::relu, false, false, Mode::eval},
             {"eval, residual", {2, 5, 5, 4}, {8, 3, 3, 4}, {}, Activation::relu, true, false, Mode::eval},
         }) {
      expect_equal(outcome_of(*context, test, composite), outcome_of(*context, test, plain_composition), test.name);
    }
}

// Gradients that the convolution makes of what the batch norm after it leaves, a block of pixels at a time.
TEST(ConvBnAct, ADeferredGradientHasTheSameBits) {
  const auto context = make_cpu_context({.threads = 2});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CompositeCase test{"", {2, 19, 21, 64}, {256, 1, 1, 64}, {}};
    if (!cpu::defers_gradient(*context, test.x, test.w, {}, dtype)) {
      EXPECT_NE(dtype, DType::f32);  // bf16 takes a processor that has products of it
      continue;
    }
    for (const bool residual : {false, true})
      for (const Activation activation : {Activation::relu, Activation::none, Activation::relu6}) {
        test.activation = activation, test.residual = residual;
        test.name = concat(dtype, residual ? ", residual" : "", ", activation ", static_cast<int>(activation));
        expect_equal(outcome_of(*context, test, composite, dtype),
                     outcome_of(*context, test, composite_in_memory, dtype), test.name);
      }
  }
}

// The gradient of the convolution's result, which the residual's copy of it would otherwise stand beside.
TEST(ConvBnAct, ADeferredGradientIsNeverInMemory) {
  const CompositeCase test{"residual", {2, 64, 64, 64}, {256, 1, 1, 64}, {}, Activation::relu, true};
  const auto peak = [&](decltype(composite)& compose) {
    const auto context = make_cpu_context({.threads = 2});
    outcome_of(*context, test, compose);
    return context->memory_stats().peak_in_use;
  };
  const size_t gradient = static_cast<size_t>(conv2d_shape(test.x, test.w, {}).count()) * sizeof(float);
  EXPECT_LE(peak(composite) + gradient / 2, peak(composite_in_memory));
}

// The statistics from the sums that the convolution makes of its output, as it would where that is faster.
TEST(ConvBnAct, EqualsThePlainCompositionWithSumsOfTheConvolution) {
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    set_batch_norm_schedule(*context, {.sums_worth = 1e9f});
    for (const CompositeCase& test : std::vector<CompositeCase>{
             {"1x1", {2, 5, 4, 16}, {24, 1, 1, 16}, {}},
             {"3x3, residual", {2, 4, 4, 8}, {8, 3, 3, 8}, {.padding = 1}, Activation::relu, true},
             {"frozen", {2, 5, 5, 8}, {8, 3, 3, 8}, {}, Activation::relu, false, true},
         }) {
      const Outcome found = outcome_of(*context, test, composite, DType::f16);
      const Outcome plain = outcome_of(*context, test, plain_composition, DType::f16);
      ASSERT_EQ(found.size(), plain.size());
      for (size_t i = 0; i < plain.size(); ++i)
        expect_close(found[i], plain[i], bounds_of(DType::f16).gradient, concat(test.name, ", tensor ", i));
    }
  }
}

// Without a residual the mask of relu follows from the convolution's output, so that y is the caller's alone.
TEST(ConvBnAct, KeepsTheConvolutionsOutputOnly) {
  const auto context = make_cpu_context();
  const Shape shape{2, 16, 16, 32}, channels{32};
  Tape tape(*context);
  const Var x = tape.variable(to_device(*context, random_array(shape, 1)));
  const Var w = tape.variable(to_device(*context, random_array({32, 1, 1, 32}, 2)));
  const Var gamma = tape.variable(to_device(*context, random_array(channels, 3)));
  const Var beta = tape.variable(to_device(*context, random_array(channels, 4)));
  const BatchNormState state{context->zeros(channels), context->zeros(channels)};
  const size_t before = context->memory_stats().in_use;
  conv_bn_act(tape, x, w, {}, gamma, beta, state, {}, Activation::relu);
  EXPECT_EQ(context->memory_stats().in_use - before, x.value.bytes() + 2 * align_up(32 * sizeof(float)));
}

}  // namespace
}  // namespace dtrain
