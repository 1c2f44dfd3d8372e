#include "dtrain/ops/batch_norm.h"

#include <cmath>

#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct Statistics {
  std::vector<double> mean, var;
};

Statistics statistics_of(const Array& x) {
  const int64_t c = x.dim(3), rows = x.count() / c;
  Statistics result{std::vector<double>(static_cast<size_t>(c)), std::vector<double>(static_cast<size_t>(c))};
  for (int64_t i = 0; i < x.count(); ++i) result.mean[static_cast<size_t>(i % c)] += x[i] / static_cast<double>(rows);
  for (int64_t i = 0; i < x.count(); ++i) {
    const double d = x[i] - result.mean[static_cast<size_t>(i % c)];
    result.var[static_cast<size_t>(i % c)] += d * d / static_cast<double>(rows);
  }
  return result;
}

Array normalized(const Array& x, const Array& gamma, const Array& beta, const Statistics& by, double epsilon,
                 Activation activation, const Array* residual) {
  Array y(x.shape);
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t c = i % x.dim(3);
    const auto channel = static_cast<size_t>(c);
    y[i] = gamma[c] * (x[i] - by.mean[channel]) / std::sqrt(by.var[channel] + epsilon) + beta[c];
    if (residual) y[i] += (*residual)[i];
    if (activation != Activation::none && y[i] < 0) y[i] = 0;
    if (activation == Activation::relu6 && y[i] > 6) y[i] = 6;
  }
  return y;
}

struct BatchNormCase {
  std::string name;
  Shape x;
  Activation activation = Activation::none;
  bool residual = false, frozen = false;
  Mode mode = Mode::train;
  float epsilon = 1e-5f;
};

// Running statistics unlike those of a batch, for eval and frozen.
Statistics running_of(int64_t c) {
  const Array mean = random_array({c}, 8), var = random_array({c}, 9, 0.5f, 2);
  return {mean.values, var.values};
}

BatchNormState state_of(Context& context, const Statistics& running) {
  const Shape c{static_cast<int64_t>(running.mean.size())};
  return {to_device(context, Array(c, running.mean)), to_device(context, Array(c, running.var))};
}

OpCase op_case(const BatchNormCase& test) {
  const int64_t c = test.x[3];
  OpCase result;
  result.name = test.name;
  result.mode = test.mode;
  result.kinks = test.activation != Activation::none;
  // Seeds unlike that of the functional: its weights, were they x itself, would have no gradient.
  const float steep = test.activation == Activation::relu6 ? 4 : 1;  // so that some elements exceed 6
  result.inputs = {random_array(test.x, 11, -1, 2), random_array({c}, 12, 0.5f * steep, 2 * steep),
                   random_array({c}, 13)};
  if (test.residual) result.inputs.push_back(random_array(test.x, 14));
  result.roles = {Role::activation, Role::parameter, Role::parameter};
  const BatchNormOptions options{.epsilon = test.epsilon, .frozen = test.frozen};
  result.op = [test, options, c](Tape& tape, const std::vector<Var>& in) {
    return batch_norm(tape, in[0], in[1], in[2], state_of(tape.context(), running_of(c)), options, test.activation,
                      test.residual ? &in[3] : nullptr);
  };
  result.reference = [test, c](const std::vector<Array>& in) {
    const bool batch = test.mode == Mode::train && !test.frozen;
    return normalized(in[0], in[1], in[2], batch ? statistics_of(in[0]) : running_of(c), test.epsilon, test.activation,
                      test.residual ? &in[3] : nullptr);
  };
  return result;
}

TEST(BatchNorm, Train) {
  for (const BatchNormCase& test : std::vector<BatchNormCase>{
           {"plain", {2, 5, 3, 5}},
           {"one image, one channel", {1, 4, 3, 1}},
           {"more rows than a block", {3, 9, 11, 17}},
           {"few rows, many channels", {1, 1, 3, 64}},
           {"large epsilon", {2, 3, 3, 8}, Activation::none, false, false, Mode::train, 0.1f},
           {"relu", {2, 6, 5, 16}, Activation::relu},
           {"residual", {2, 4, 4, 3}, Activation::none, true},
           {"residual and relu", {2, 5, 4, 24}, Activation::relu, true},
           {"relu6", {2, 6, 5, 16}, Activation::relu6},
           {"residual and relu6", {2, 5, 4, 24}, Activation::relu6, true},
       })
    check_op(op_case(test));
}

TEST(BatchNorm, FrozenAndEval) {
  for (const Activation activation : {Activation::none, Activation::relu, Activation::relu6})
    for (const bool residual : {false, true}) {
      check_op(op_case({"frozen", {2, 3, 5, 17}, activation, residual, true}));
      check_op(op_case({"eval", {2, 3, 5, 17}, activation, residual, false, Mode::eval}));
    }
}

// Detection trains on a frozen backbone: then x is not kept, and the mask comes from y.
TEST(BatchNorm, FrozenWithConstantGammaAndBeta) {
  for (const bool residual : {false, true}) {
    OpCase test = op_case({"constant gamma and beta", {2, 3, 4, 6}, Activation::relu, residual, true});
    const Array gamma = test.inputs[1], beta = test.inputs[2];
    const auto op = test.op;
    const auto reference = test.reference;
    test.inputs.erase(test.inputs.begin() + 1, test.inputs.begin() + 3);
    test.roles.clear();
    test.op = [=](Tape& tape, const std::vector<Var>& in) {
      Context& context = tape.context();
      std::vector<Var> all{in[0], tape.constant(to_device(context, gamma)), tape.constant(to_device(context, beta))};
      if (residual) all.push_back(in[1]);
      return op(tape, all);
    };
    test.reference = [=](const std::vector<Array>& in) {
      std::vector<Array> all{in[0], gamma, beta};
      if (residual) all.push_back(in[1]);
      return reference(all);
    };
    check_op(test);
  }
}

TEST(BatchNorm, InputIsItsOwnResidual) {
  OpCase test = op_case({"relu(bn(x) + x)", {2, 4, 3, 7}, Activation::relu});
  const BatchNormOptions options;
  test.op = [options](Tape& tape, const std::vector<Var>& in) {
    return batch_norm(tape, in[0], in[1], in[2], state_of(tape.context(), running_of(7)), options, Activation::relu,
                      &in[0]);
  };
  test.reference = [options](const std::vector<Array>& in) {
    return normalized(in[0], in[1], in[2], statistics_of(in[0]), options.epsilon, Activation::relu, &in[0]);
  };
  check_op(test);
}

// An add hands one gradient to both of its inputs: the backward must not write its results over it.
TEST(BatchNorm, LeavesAGradientAloneThatOthersRead) {
  for (const bool residual : {false, true}) {
    OpCase test = op_case({"bn(x) + z", {2, 4, 3, 7}, Activation::relu, residual});
    const auto op = test.op;
    const auto reference = test.reference;
    test.inputs.push_back(random_array({2, 4, 3, 7}, 19));
    test.op = [op](Tape& tape, const std::vector<Var>& in) { return add(tape, op(tape, in), in.back()); };
    test.reference = [reference](const std::vector<Array>& in) {
      Array y = reference(in);
      for (int64_t i = 0; i < y.count(); ++i) y[i] += in.back()[i];
      return y;
    };
    check_op(test);
  }
}

void expect_running(bool unbiased) {
  for (const auto& context : devices()) {
    const Array x = random_array({3, 5, 4, 6}, 1, 2, 5);
    const Statistics before = running_of(6), batch = statistics_of(x);
    const BatchNormState state = state_of(*context, before);
    Tape tape(*context);
    batch_norm(tape, tape.variable(to_device(*context, x)), tape.constant(to_device(*context, Array({6}, 1))),
               tape.constant(to_device(*context, Array({6}))), state,
               {.momentum = 0.75f, .unbiased_running_variance = unbiased});
    Array mean({6}), var({6});
    for (int64_t i = 0; i < 6; ++i) {
      const auto c = static_cast<size_t>(i);
      mean[i] = 0.75 * before.mean[c] + 0.25 * batch.mean[c];
      var[i] = 0.75 * before.var[c] + 0.25 * batch.var[c] * (unbiased ? 60.0 / 59.0 : 1.0);
    }
    expect_close(to_host(*context, state.running_mean), mean, 1e-6, "running mean");
    expect_close(to_host(*context, state.running_var), var, 1e-6, "running variance");
  }
}

TEST(BatchNorm, RunningStatisticsMoveTowardsTheBatch) {
  expect_running(true);
  expect_running(false);
}

TEST(BatchNorm, FrozenAndEvalLeaveRunningStatisticsAlone) {
  for (const auto& context : devices())
    for (const Mode mode : {Mode::train, Mode::eval}) {
      const Statistics before = running_of(6);
      const BatchNormState state = state_of(*context, before);
      Tape tape(*context, mode);
      batch_norm(tape, tape.variable(to_device(*context, random_array({2, 3, 3, 6}, 1))),
                 tape.constant(to_device(*context, Array({6}, 1))), tape.constant(to_device(*context, Array({6}))),
                 state, {.frozen = true});
      EXPECT_EQ(to_host(*context, state.running_mean).values, before.mean);
      EXPECT_EQ(to_host(*context, state.running_var).values, before.var);
    }
}

// The statistics of x on every device, read off running ones that keep nothing of what they were.
void expect_statistics(const Array& x, const std::vector<std::unique_ptr<Context>>& contexts = devices()) {
  const Statistics exact = statistics_of(x);
  const int64_t c = x.dim(3);
  for (const auto& context : contexts) {
    const BatchNormState state = state_of(*context, running_of(c));
    Tape tape(*context);
    batch_norm(tape, tape.variable(to_device(*context, x)), tape.constant(to_device(*context, Array({c}, 1))),
               tape.constant(to_device(*context, Array({c}))), state,
               {.momentum = 0, .unbiased_running_variance = false});
    // A few units in the last place of a float.
    expect_close(to_host(*context, state.running_mean), Array({c}, exact.mean), 2e-7, "mean");
    expect_close(to_host(*context, state.running_var), Array({c}, exact.var), 2e-6, "variance");
  }
}

// Sums of squares in float would leave no digit of the variance here.
TEST(BatchNorm, KeepsItsDigitsFarFromZero) {
  Array x = random_array({4, 16, 16, 9}, 1);
  for (double& value : x.values) value = static_cast<float>(value + 1000);
  expect_statistics(x);
}

// A first row, a first block unlike all others: what the sums are shifted by must not matter.
TEST(BatchNorm, KeepsItsDigitsAfterAnOutlier) {
  Array x = random_array({2, 20, 20, 5}, 1);
  for (int64_t i = 0; i < 64 * 5; ++i) x[i] = static_cast<float>(x[i] + 300);
  expect_statistics(x);
}

TEST(BatchNorm, TakesFewerRowsThanThreads) {
  std::vector<std::unique_ptr<Context>> four;
  four.push_back(make_cpu_context({.threads = 4}));
  expect_statistics(random_array({1, 1, 3, 6}, 1), four);
}

TEST(BatchNorm, RefusesShapesThatDoNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  auto zeros = [&](Shape shape) { return tape.constant(context->zeros(shape)); };
  const BatchNormState state{context->zeros({6}), context->zeros({6})};
  const Var x = zeros({2, 3, 3, 6}), other = zeros({2, 3, 4, 6});
  auto refused = [&](const Var& images, const Var& gamma, const Var& beta, const Var* residual, const char* part) {
    expect_error([&] { batch_norm(tape, images, gamma, beta, state, {}, Activation::none, residual); }, Fault::config,
                 part);
  };
  refused(zeros({18, 6}), zeros({6}), zeros({6}), nullptr, "expected [n, h, w, c]");
  refused(x, zeros({5}), zeros({6}), nullptr, "gamma [5] and beta [6], expected [6]");
  refused(x, zeros({6}), zeros({6}), &other, "residual [2, 3, 4, 6], expected [2, 3, 3, 6]");
  refused(zeros({2, 3, 3, 5}), zeros({5}), zeros({5}), nullptr, "running statistics [6]");
}

}  // namespace
}  // namespace dtrain
