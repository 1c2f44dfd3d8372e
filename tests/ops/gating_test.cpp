// Multiplication, scaling, sigmoid and SiLU against one-line references.
#include "dtrain/ops/gating.h"

#include <cmath>

#include "dtrain/ops/scalar_loss.h"
#include "libdtrain/ops/gating_math.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

Array each(const Array& x, const std::function<double(int64_t)>& f) {
  Array y(x.shape);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = f(i);
  return y;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

const Shape kShapes[] = {{1}, {3, 11}, {2, 5, 3, 4}, {9, 5000}};

TEST(Gating, Mul) {
  for (const Shape& shape : kShapes)
    check_op({.name = concat("mul ", shape),
              .inputs = {random_array(shape, 3), random_array(shape, 4)},
              .op = [](Tape& t, const Vars& v) { return mul(t, v[0], v[1]); },
              .reference = [](const Arrays& a) { return each(a[0], [&](int64_t i) { return a[0][i] * a[1][i]; }); }});
}

TEST(Gating, MulOfATensorWithItselfOrWithAConstant) {
  const Array constant = random_array({13}, 6);
  check_op({{.name = "x * x",
             .inputs = {random_array({13}, 5)},
             .op = [](Tape& t, const Vars& v) { return mul(t, v[0], v[0]); },
             .reference = [](const Arrays& a) { return each(a[0], [&](int64_t i) { return a[0][i] * a[0][i]; }); }},
            {.name = "constant * x",
             .inputs = {random_array({13}, 5)},
             .op =
                 [=](Tape& t, const Vars& v) {
                   const Tensor factor = to_device(t.context(), constant, v[0].value.dtype());
                   return mul(t, t.constant(factor), v[0]);
                 },
             .reference = [=](const Arrays& a) { return each(a[0], [&](int64_t i) { return constant[i] * a[0][i]; }); },
             .f32_only = true}});
}

TEST(Gating, MulRefusesWhatDiffers) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const auto var = [&](Shape shape, DType dtype) { return tape.constant(context->zeros(shape, dtype)); };
  expect_error(
      [&] {
        mul(tape, var({2, 3}, DType::f32), var({3, 2}, DType::f32));
      },
      Fault::config, "mul: factors [2, 3] of f32 and [3, 2] of f32");
  expect_error([&] { mul(tape, var({2}, DType::f32), var({2}, DType::bf16)); }, Fault::config, "[2] of bf16");
}

TEST(Gating, Scale) {
  for (const Shape& shape : kShapes)
    check_op({.name = concat("scale ", shape),
              .inputs = {random_array(shape, 3)},
              .op = [](Tape& t, const Vars& v) { return scale(t, v[0], -0.375f); },
              .reference = [](const Arrays& a) { return each(a[0], [&](int64_t i) { return -0.375 * a[0][i]; }); }});
}

TEST(Gating, Sigmoid) {
  for (const Shape& shape : kShapes)
    check_op({.name = concat("sigmoid ", shape),
              .inputs = {random_array(shape, 3, -6, 6)},
              .op = [](Tape& t, const Vars& v) { return sigmoid(t, v[0]); },
              .reference = [](const Arrays& a) { return each(a[0], [&](int64_t i) { return logistic(a[0][i]); }); }});
}

TEST(Gating, Silu) {
  for (const Shape& shape : kShapes)
    check_op({.name = concat("silu ", shape),
              .inputs = {random_array(shape, 3, -6, 6)},
              .op = [](Tape& t, const Vars& v) { return silu(t, v[0]); },
              .reference =
                  [](const Arrays& a) { return each(a[0], [&](int64_t i) { return a[0][i] * logistic(a[0][i]); }); }});
}

// Identity in forward, scaled gradient in backward.
TEST(Gating, ScaleGradient) {
  for (const auto& context : devices()) {
    const Array x = random_array({2, 5, 3}, 4);
    Tape tape(*context);
    const Var leaf = tape.variable(to_device(*context, x));
    const Var y = scale_gradient(tape, leaf, 0.25f);
    expect_close(to_host(*context, y.value), x, 0, "value");
    const Tensor zero = context->zeros(x.shape);
    // The gradient of mean(x^2) is x / 15, once through the op and once directly
    const std::vector<Var> losses = {mean_squared_error(tape, y, zero), mean_squared_error(tape, leaf, zero)};
    tape.backward(weighted_sum(tape, losses, {1, 1}));
    const Array dx = to_host(*context, tape.grad(leaf));
    for (int64_t i = 0; i < x.count(); ++i) EXPECT_NEAR(dx[i], 1.25 * x[i] / 15, 1e-7);
  }
}

TEST(Gating, SigmoidAtItsEnds) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Array x({6}, {-INFINITY, -1e4, -100, 100, 1e4, INFINITY});
    const Array y = to_host(*context, sigmoid(tape, tape.constant(to_device(*context, x))).value);
    for (int64_t i = 0; i < 3; ++i) EXPECT_LE(y[i], 1e-38) << x[i];
    for (int64_t i = 3; i < 6; ++i) EXPECT_EQ(y[i], 1) << x[i];
    const Array nan = to_host(*context, sigmoid(tape, tape.constant(to_device(*context, Array({1}, NAN)))).value);
    EXPECT_TRUE(std::isnan(nan[0]));
  }
}

TEST(VectorExp, IsCloseToTheLibrarys) {
  for (float x = -87; x <= 88; x += 0.00137f) {
    const double expected = std::exp(static_cast<double>(x));
    ASSERT_LE(std::abs(vector_exp(x) - expected), 1.2e-7 * expected) << x;
  }
  EXPECT_EQ(vector_exp(0), 1);
  EXPECT_GT(vector_exp(-INFINITY), 0);
  EXPECT_LT(vector_exp(INFINITY), INFINITY);
}

}  // namespace
}  // namespace dtrain
