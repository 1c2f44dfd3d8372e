// Mean squared error and weighted sums of losses.
#include "dtrain/ops/scalar_loss.h"

#include <cmath>

#include "dtrain/ops/loss.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

OpCase squared_error_case(Shape shape) {
  const Array target = random_array(shape, 2, -2, 2);
  return {.name = concat("mean_squared_error ", shape),
          .inputs = {random_array(shape, 1)},
          .op = [=](Tape& t, const Vars& v) { return mean_squared_error(t, v[0], to_device(t.context(), target)); },
          .reference =
              [=](const Arrays& a) {
                double sum = 0;
                for (int64_t i = 0; i < target.count(); ++i) sum += (a[0][i] - target[i]) * (a[0][i] - target[i]);
                return Array({1}, sum / static_cast<double>(target.count()));
              }};
}

TEST(MeanSquaredError, ValueAndGradient) {
  check_op({squared_error_case({1}), squared_error_case({3, 7}), squared_error_case({2, 5, 3, 4}),
            squared_error_case({9, 5001})});
}

TEST(MeanSquaredError, DoesNotDependOnTheNumberOfThreads) {
  const auto run = [](int threads) {
    const auto context = make_cpu_context({.threads = threads});
    Tape tape(*context);
    const Var x = tape.constant(to_device(*context, random_array({300000}, 1)));
    return to_host(*context, mean_squared_error(tape, x, context->zeros({300000})).value)[0];
  };
  EXPECT_EQ(run(1), run(2));
}

TEST(MeanSquaredError, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.constant(context->zeros({2, 3}));
  expect_error([&] { mean_squared_error(tape, x, context->zeros({3, 2})); }, Fault::config, "a target [3, 2] of f32");
  expect_error([&] { mean_squared_error(tape, x, context->zeros({2, 3}, DType::i32)); }, Fault::config, "of i32");
  expect_error([&] { mean_squared_error(tape, tape.constant(context->zeros({0})), context->zeros({0})); },
               Fault::config, "with elements");
}

TEST(WeightedSum, ValueAndGradients) {
  check_op({.name = "weighted_sum",
            .inputs = {random_array({1}, 1), random_array({1}, 2), random_array({1}, 3)},
            .op =
                [](Tape& t, const Vars& v) {
                  return weighted_sum(t, v, {1.0f, 0.4f, -2.5f});
                },
            .reference = [](const Arrays& a) { return Array({1}, a[0][0] + double{0.4f} * a[1][0] - 2.5 * a[2][0]); },
            .roles = {Role::parameter, Role::parameter, Role::parameter}});
}

// Two heads on one trunk: both gradients reach it with their weights, and the loss scale applies once.
TEST(WeightedSum, OfTwoLossesOfOneInput) {
  for (const auto& context : devices()) {
    context->set_step_state({.loss_scale = 8});
    Tape tape(*context);
    const Array values = random_array({4, 3}, 1), target = random_array({4, 3}, 2);
    const Var x = tape.variable(to_device(*context, values));
    const Tensor labels = to_device<int32_t>(*context, {4}, {0, 1, 2, 0});
    const Var entropy = softmax_cross_entropy(tape, x, labels).loss;
    const Var squares = mean_squared_error(tape, x, to_device(*context, target));
    const Var loss = weighted_sum(tape, {entropy, squares}, {1.0f, 0.4f});
    EXPECT_NEAR(to_host(*context, loss.value)[0],
                to_host(*context, entropy.value)[0] + 0.4 * to_host(*context, squares.value)[0], 1e-6);
    tape.backward(loss);
    const Array dx = to_host(*context, tape.grad(x));
    for (int64_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (int64_t c = 0; c < 3; ++c) sum += std::exp(values[3 * row + c]);
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t i = 3 * row + c;
        const double first = (std::exp(values[i]) / sum - (c == row % 3 ? 1 : 0)) / 4;
        EXPECT_NEAR(dx[i], 8 * (first + 0.4 * 2 * (values[i] - target[i]) / 12), 1e-5) << i;
      }
    }
    context->set_step_state({});
  }
}

TEST(WeightedSum, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var loss = tape.constant(context->zeros({1}));
  expect_error([&] { weighted_sum(tape, {}, {}); }, Fault::config, "0 losses and 0 weights");
  expect_error([&] { weighted_sum(tape, {loss}, {1, 2}); }, Fault::config, "1 losses and 2 weights");
  expect_error(
      [&] {
        weighted_sum(tape, {loss, tape.constant(context->zeros({2}))}, {1, 1});
      },
      Fault::config, "loss 1 is [2] of f32");
}

}  // namespace
}  // namespace dtrain
