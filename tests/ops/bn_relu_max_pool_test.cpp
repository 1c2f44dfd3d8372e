#include "dtrain/ops/bn_relu_max_pool.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

// y, the running statistics, and in training the gradients of x, gamma and beta.
std::vector<Array> outcome_of(Context& context, const Shape& x_shape, DType dtype, const PoolOptions& pool, Mode mode,
                              bool frozen, bool composite) {
  poison(context);
  const Shape channels{x_shape[3]};
  Tape tape(context, mode);
  const Var x = tape.variable(to_device(context, rounded(random_array(x_shape, 11), dtype), dtype));
  const Var gamma = tape.variable(to_device(context, random_array(channels, 12, -1, 2)));
  const Var beta = tape.variable(to_device(context, random_array(channels, 13, -0.5f, 1)));
  const BatchNormState state{to_device(context, random_array(channels, 14)),
                             to_device(context, random_array(channels, 15, 0.5f, 2))};
  const BatchNormOptions bn{.frozen = frozen};
  const Var y = composite ? bn_relu_max_pool(tape, x, gamma, beta, state, bn, pool)
                          : max_pool(tape, batch_norm(tape, x, gamma, beta, state, bn, Activation::relu), pool);
  std::vector<Array> outcome;
  for (const Tensor& value : {y.value, state.running_mean, state.running_var})
    outcome.push_back(to_host(context, value));
  if (mode == Mode::eval) return outcome;
  const Tensor dy = to_device(context, rounded(random_array(y.shape(), 16), dtype), dtype);
  tape.backward(tape.record("gradient", context.zeros({1}), {&y},
                            [y = y.without_value(), dy](Tape& t, const Tensor&) { t.pass_grad(y, dy); }));
  for (const Var& input : {x, gamma, beta}) outcome.push_back(to_host(context, tape.grad(input)));
  return outcome;
}

void expect_equal(const Shape& x, const PoolOptions& pool, Mode mode = Mode::train, bool frozen = false) {
  for (const auto& context : devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (context->is_cpu() && dtype == DType::f16) continue;
      SCOPED_TRACE(concat(context->device(), ", ", dtype, ", ", x));
      const auto composite = outcome_of(*context, x, dtype, pool, mode, frozen, true);
      const auto plain = outcome_of(*context, x, dtype, pool, mode, frozen, false);
      ASSERT_EQ(composite.size(), plain.size());
      for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(composite[i].values, plain[i].values) << "tensor " << i;
    }
}

TEST(BnReluMaxPool, EqualsThePlainComposition) {
  for (const int64_t c : {1, 8, 24, 65}) expect_equal({2, 9, 8, c}, kResNetPool);
  expect_equal({1, 12, 7, 16}, {.kernel = 2, .stride = 2, .padding = 0});
  expect_equal({1, 9, 11, 8}, {.kernel = {3, 5}, .stride = {1, 2}, .padding = {1, 1, 2, 1}});
  expect_equal({2, 7, 7, 8}, kResNetPool, Mode::train, true);
  expect_equal({2, 7, 7, 8}, kResNetPool, Mode::eval);
}

TEST(BnReluMaxPool, ChecksItsInputs) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  auto zeros = [&](Shape shape) { return tape.constant(context->zeros(shape)); };
  const BatchNormState state{context->zeros({6}), context->zeros({6})};
  expect_error(
      [&] {
        bn_relu_max_pool(tape, zeros({2, 3, 3, 6}), zeros({5}), zeros({6}), state);
      },
      Fault::config, "gamma [5] and beta [6], expected [6]");
}

}  // namespace
}  // namespace dtrain
