// Masked losses against their definitions in double precision.
#include "dtrain/ops/masked_losses.h"

#include <cmath>
#include <limits>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

// Distinct weights, some zero.
Array some_weights(Shape shape) {
  Array weights = random_array(shape, 11, 0.25f, 2);
  for (int64_t i = 0; i < weights.count(); ++i)
    if (i % 3 == 1) weights[i] = 0;
  return weights;
}

template <class Term>
Array naive_masked_sum(const Array& x, const Array& targets, const Array& weights, double divisor, const Term& term) {
  double sum = 0;
  for (int64_t i = 0; i < x.count(); ++i) sum += weights[i / (x.count() / weights.count())] * term(x[i], targets[i]);
  return Array({1}, sum / divisor);
}

double naive_sigmoid_term(double x, double target) {
  const double p = 1 / (1 + std::exp(-x));
  return -target * std::log(p) - (1 - target) * std::log(1 - p);
}

double naive_huber(double x, double target, double beta) {
  const double d = std::abs(x - target);
  return d < beta ? d * d / (2 * beta) : d - beta / 2;
}

LossDivisor divisor_of(Context& context, float constant, double count) {
  return {constant, count < 0 ? Tensor() : to_device(context, Array({1}, count))};
}

TEST(MaskedLosses, SigmoidCrossEntropy) {
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{7}, {7}}, {{5, 3}, {5, 3}}, {{6, 4, 2}, {6}}, {{9, 28, 28}, {9}}, {{20, 1031}, {20, 1031}}};
  for (const auto& [shape, per] : shapes)
    for (const double count : {-1.0, 0.0, 12.0}) {
      const Array targets = random_array(shape, 2, 0, 1), weights = some_weights(per);
      check_op({.name = concat("sigmoid_cross_entropy ", shape, " by ", per, ", count ", count),
                .inputs = {random_array(shape, 1, -4, 4)},
                .op =
                    [=](Tape& t, const Vars& v) {
                      Context& c = t.context();
                      return sigmoid_cross_entropy(t, v[0], to_device(c, targets), to_device(c, weights),
                                                   divisor_of(c, 2.5f, count));
                    },
                .reference =
                    [=](const Arrays& a) {
                      return naive_masked_sum(a[0], targets, weights, 2.5 * std::max(count, 1.0), naive_sigmoid_term);
                    }});
    }
}

TEST(MaskedLosses, SmoothL1) {
  for (const Shape shape : {Shape{7}, Shape{6, 4}, Shape{5, 2, 3}, Shape{700, 12}})
    for (const float beta : {1.0f, 0.1111f, 0.0f}) {
      const Array targets = random_array(shape, 2, -2, 2), weights = some_weights({shape[0]});
      check_op({.name = concat("smooth_l1 ", shape, ", beta ", beta),
                .inputs = {random_array(shape, 1, -2, 2)},
                .op =
                    [=](Tape& t, const Vars& v) {
                      Context& c = t.context();
                      return smooth_l1(t, v[0], to_device(c, targets), to_device(c, weights), beta,
                                       divisor_of(c, 0.5f, 3));
                    },
                .reference =
                    [=](const Arrays& a) {
                      const auto term = [&](double x, double target) { return naive_huber(x, target, double{beta}); };
                      return naive_masked_sum(a[0], targets, weights, 1.5, term);
                    },
                .kinks = true});
    }
}

TEST(MaskedLosses, WhatHasNoWeightDoesNotCountWhateverItIs) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const auto& context : devices()) {
    const Tensor targets = to_device(*context, Array({4}, {1, nan, 0, 1})), none = context->zeros({4});
    const Tensor weights = to_device(*context, Array({4}, {1, 0, 0, 0}));
    for (const bool sigmoid : {true, false}) {
      const auto run = [&](const Tensor& weight) {
        Tape tape(*context);
        const Var x = tape.variable(to_device(*context, Array({4}, {3, nan, infinity, -infinity})));
        const Var loss =
            sigmoid ? sigmoid_cross_entropy(tape, x, targets, weight, {}) : smooth_l1(tape, x, targets, weight, 1, {});
        tape.backward(loss);
        Array result = to_host(*context, tape.grad(x));
        result.values.push_back(to_host(*context, loss.value)[0]);
        return result.values;
      };
      EXPECT_EQ(run(none), std::vector<double>(5, 0));
      const auto one = run(weights);
      for (const double value : one) EXPECT_TRUE(std::isfinite(value));
      EXPECT_NE(one[4], 0);
    }
  }
}

TEST(MaskedLosses, LargeLogitsNeitherOverflowNorVanish) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var x = tape.variable(to_device(*context, Array({2}, {300, -300})));
    const Tensor targets = to_device(*context, Array({2}, {0, 1})), weights = to_device(*context, Array({2}, 1));
    const Var loss = sigmoid_cross_entropy(tape, x, targets, weights, {});
    tape.backward(loss);
    EXPECT_EQ(to_host(*context, loss.value)[0], 600);
    EXPECT_EQ(to_host(*context, tape.grad(x)).values, (std::vector<double>{1, -1}));
  }
}

TEST(SelectClass, ValueAndGradient) {
  const std::vector<int32_t> classes{2, -1, 0, 4, 1};
  for (const Shape shape : {Shape{5, 1, 5, 4}, Shape{5, 6, 5, 1}, Shape{5, 3, 7, 2}})
    check_op({.name = concat("select_class ", shape),
              .inputs = {random_array(shape, 1)},
              .op = [=](Tape& t, const Vars& v) { return select_class(t, v[0], to_device(t.context(), {5}, classes)); },
              .reference =
                  [=](const Arrays& a) {
                    const int64_t groups = shape[1], width = shape[3];
                    Array y({5, groups, width});
                    for (int64_t i = 0; i < y.count(); ++i) {
                      const int64_t row = i / (groups * width), chosen = classes[static_cast<size_t>(row)];
                      if (chosen >= 0) y[i] = a[0].at(row, i / width % groups, chosen, i % width);
                    }
                    return y;
                  },
              .exact = true});
}

TEST(SelectClass, AClassThatDoesNotExistThrowsOrIsNan) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var x = tape.variable(to_device(*context, random_array({2, 3, 4, 1}, 1)));
    const Tensor classes = to_device(*context, {2}, std::vector<int32_t>{4, 1});
    if (context->is_cpu()) {
      expect_error([&] { select_class(tape, x, classes); }, Fault::config, "class 4 in row 0, of 4 classes");
      continue;
    }
    const Array y = to_host(*context, select_class(tape, x, classes).value);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_FALSE(std::isnan(y[3]));
  }
}

TEST(MaskedLosses, RefuseWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.constant(context->zeros({3, 4}));
  const Tensor targets = context->zeros({3, 4}), weights = context->zeros({3}), wrong = context->zeros({4});
  const auto refused = [](const std::function<void()>& action, const char* part) {
    expect_error(action, Fault::config, part);
  };
  refused([&] { sigmoid_cross_entropy(tape, x, weights, weights, {}); }, "targets [3]");
  refused([&] { sigmoid_cross_entropy(tape, x, targets, wrong, {}); }, "weights [4]");
  refused([&] { sigmoid_cross_entropy(tape, x, targets, weights, {0, {}}); }, "constant 0");
  refused([&] { smooth_l1(tape, x, targets, weights, 1, {1, wrong}); }, "count [4]");
  refused([&] { smooth_l1(tape, x, targets, targets, 1, {}); }, "weights [3, 4]");
  refused([&] { smooth_l1(tape, x, targets, weights, -1, {}); }, "beta -1");
  refused([&] { select_class(tape, x, weights); }, "[n, a, k, b]");
  refused([&] { select_class(tape, tape.constant(context->zeros({3, 1, 2, 4})), weights); }, "classes [3] of f32");
}

}  // namespace
}  // namespace dtrain
