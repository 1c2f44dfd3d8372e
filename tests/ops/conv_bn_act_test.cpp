#include "libdtrain/ops/conv_bn_act.h"

#include "libdtrain/ops/matmul.h"
#include "libdtrain/ops/pointwise.h"
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
using Outcome = std::vector<std::vector<float>>;

Var plain_composition(Tape& tape, const CompositeCase& test, const std::vector<Var>& in, const BatchNormState& state,
                      const BatchNormOptions& bn) {
  Var y = batch_norm(tape, conv2d(tape, in[0], in[1], test.conv), in[2], in[3], state, bn);
  if (test.residual) y = add(tape, y, in[4]);
  return test.activation == Activation::relu ? relu(tape, y) : y;
}

Outcome outcome_of(Context& context, const CompositeCase& test, bool composite) {
  poison(context);
  const Shape y_shape = conv2d_shape(test.x, test.w, test.conv), channels{test.w[0]};
  Tape tape(context, test.mode);
  std::vector<Var> in;
  for (const Array& input : {random_array(test.x, 11), random_array(test.w, 12), random_array(channels, 13, 0.5f, 2),
                             random_array(channels, 14), random_array(y_shape, 15)})
    in.push_back(tape.variable(to_device(context, input)));
  const BatchNormState state{to_device(context, random_array(channels, 16)),
                             to_device(context, random_array(channels, 17, 0.5f, 2))};
  const BatchNormOptions bn{.frozen = test.frozen};
  const Var y = composite ? conv_bn_act(tape, in[0], in[1], test.conv, in[2], in[3], state, bn, test.activation,
                                        test.residual ? &in[4] : nullptr)
                          : plain_composition(tape, test, in, state, bn);
  Outcome outcome;
  for (const Tensor& value : {y.value, state.running_mean, state.running_var})
    outcome.push_back(values_of<float>(context, value));
  if (test.mode == Mode::eval) return outcome;
  const Var weights = tape.constant(to_device(context, random_array({1, y_shape.count()}, 18)));
  // One row, so that the product with the weights is one number.
  const Var row = tape.record("row", y.value.view({1, y_shape.count()}), {&y},
                              [y = y.without_value()](Tape& t, const Tensor& dy) { t.pass_grad(y, dy); });
  tape.backward(linear(tape, row, weights));
  for (size_t i = 0; i < (test.residual ? 5u : 4u); ++i) outcome.push_back(values_of<float>(context, tape.grad(in[i])));
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
      const Outcome composite = outcome_of(*context, test, true), plain = outcome_of(*context, test, false);
      ASSERT_EQ(composite.size(), plain.size());
      for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(composite[i], plain[i]) << test.name << ", tensor " << i;
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
