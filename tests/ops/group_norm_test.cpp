// Group norm and layer norm against loops over groups.
#include "dtrain/ops/group_norm.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

// x as [n, pixels, c].
Array reference(const Arrays& a, int64_t pixels, int64_t groups, double epsilon) {
  const Array &x = a[0], &gamma = a[1], &beta = a[2];
  const int64_t c = gamma.count(), width = c / groups, n = x.count() / (pixels * c);
  Array y(x.shape);
  for (int64_t image = 0; image < n; ++image)
    for (int64_t group = 0; group < groups; ++group) {
      const auto for_each = [&](const auto& body) {
        for (int64_t p = 0; p < pixels; ++p)
          for (int64_t j = group * width; j < (group + 1) * width; ++j) body((image * pixels + p) * c + j, j);
      };
      const auto size = static_cast<double>(pixels * width);
      double mean = 0, variance = 0;
      for_each([&](int64_t i, int64_t) { mean += x[i] / size; });
      for_each([&](int64_t i, int64_t) { variance += (x[i] - mean) * (x[i] - mean) / size; });
      for_each(
          [&](int64_t i, int64_t j) { y[i] = gamma[j] * (x[i] - mean) / std::sqrt(variance + epsilon) + beta[j]; });
    }
  return y;
}

OpCase group_case(Shape shape, int groups, float epsilon = 1e-5f, float mean = 0) {
  const int64_t c = shape[shape.rank() - 1];
  const int64_t pixels = shape.rank() == 4 ? shape[1] * shape[2] : 1;
  return {
      .name = concat("group_norm ", shape, " in ", groups),
      // Not the seed of check_op's weights: the gradient along x itself is zero but for epsilon.
      .inputs = {random_array(shape, 4, mean - 1, mean + 1), random_array({c}, 2, 0.5f, 1.5f), random_array({c}, 3)},
      .op = [=](Tape& t, const Vars& v) { return group_norm(t, v[0], v[1], v[2], groups, epsilon); },
      .reference = [=](const Arrays& a) { return reference(a, pixels, groups, epsilon); },
      .roles = {Role::activation, Role::parameter, Role::parameter}};
}

OpCase layer_case(Shape shape) {
  const int64_t c = shape[shape.rank() - 1];
  return {.name = concat("layer_norm ", shape),
          .inputs = {random_array(shape, 4), random_array({c}, 2, 0.5f, 1.5f), random_array({c}, 3)},
          .op = [=](Tape& t, const Vars& v) { return layer_norm(t, v[0], v[1], v[2]); },
          .reference = [=](const Arrays& a) { return reference(a, 1, 1, 1e-5f); },
          .roles = {Role::activation, Role::parameter, Role::parameter}};
}

TEST(GroupNorm, ValueAndGradients) {
  check_op({group_case({2, 3, 5, 12}, 3), group_case({1, 4, 4, 64}, 8), group_case({3, 9, 10, 32}, 32),
            group_case({2, 7, 7, 20}, 1), group_case({5, 48}, 4), group_case({2, 20, 20, 16}, 2, 0.1f)});
}

TEST(GroupNorm, OfImagesWithALargeMean) {
  OpCase test = group_case({2, 6, 6, 16}, 4, 1e-5f, 30);
  test.f32_only = true;
  check_op(test);
}

TEST(LayerNorm, ValueAndGradients) {
  check_op(
      {layer_case({5}), layer_case({7, 48}), layer_case({3, 5, 33}), layer_case({300, 96}), layer_case({2, 5000})});
}

TEST(GroupNorm, IsTheSameInEval) {
  OpCase test = group_case({2, 3, 5, 12}, 3);
  test.mode = Mode::eval;
  check_op(test);
}

// The partition among threads (groups of an image, or images) must not affect the result.
TEST(GroupNorm, DoesNotDependOnTheNumberOfThreads) {
  const auto run = [](int threads) {
    const auto context = make_cpu_context({.threads = threads});
    Tape tape(*context, Mode::eval);
    const Var x = tape.constant(to_device(*context, random_array({3, 40, 40, 48}, 1)));
    const Var gamma = tape.constant(to_device(*context, random_array({48}, 2)));
    return to_host(*context, group_norm(tape, x, gamma, gamma, 6).value).values;
  };
  EXPECT_EQ(run(1), run(2));
  EXPECT_EQ(run(1), run(3));
}

// One differentiable input at a time, as in partly frozen networks.
TEST(GroupNorm, ConstantInputsGetNoGradient) {
  const OpCase all = group_case({2, 3, 5, 12}, 3);
  for (size_t input = 0; input < 3; ++input) {
    OpCase test = all;
    test.name = concat(test.name, ", input ", input, " alone");
    test.inputs = {all.inputs[input]};
    const auto whole = [=](const auto& own, const auto& constant) {
      return std::vector{input == 0 ? own : constant(0), input == 1 ? own : constant(1),
                         input == 2 ? own : constant(2)};
    };
    test.op = [=](Tape& t, const Vars& v) {
      return all.op(t, whole(v[0], [&](size_t i) { return t.constant(to_device(t.context(), all.inputs[i])); }));
    };
    test.reference = [=](const Arrays& a) {
      return all.reference(whole(a[0], [&](size_t i) { return all.inputs[i]; }));
    };
    test.f32_only = true;
    check_op(test);
  }
}

TEST(GroupNorm, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const auto zeros = [&](Shape shape) { return tape.constant(context->zeros(shape)); };
  const Var x = zeros({2, 3, 3, 12}), gamma = zeros({12});
  expect_error([&] { group_norm(tape, x, gamma, gamma, 5); }, Fault::config, "in 5 groups, expected elements, and");
  expect_error([&] { group_norm(tape, x, gamma, gamma, 0); }, Fault::config, "in 0 groups");
  expect_error([&] { group_norm(tape, zeros({3, 12, 2}), gamma, gamma, 4); }, Fault::config, "found [3, 12, 2]");
  expect_error([&] { group_norm(tape, x, zeros({4}), gamma, 4); }, Fault::config, "gamma [4] and beta [12]");
  expect_error([&] { layer_norm(tape, zeros({0, 12}), gamma, gamma); }, Fault::config, "with elements, found [0, 12]");
}

}  // namespace
}  // namespace dtrain
