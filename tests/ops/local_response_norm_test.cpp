// Local response normalisation against its definition.
#include "dtrain/ops/local_response_norm.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

Array naive_response_norm(const Array& x, const LocalResponseNormOptions& o) {
  const int64_t channels = x.dim(x.shape.rank() - 1);
  Array y(x.shape);
  for (int64_t i = 0; i < x.count(); ++i) {
    double squares = 0;
    for (int64_t j = i % channels - o.radius; j <= i % channels + o.radius; ++j)
      if (j >= 0 && j < channels) squares += x[i - i % channels + j] * x[i - i % channels + j];
    y[i] = x[i] / std::pow(double{o.bias} + double{o.alpha} * squares, double{o.beta});
  }
  return y;
}

TEST(LocalResponseNorm, IsItsDefinition) {
  struct Form {
    Shape x;
    LocalResponseNormOptions options;
  };
  const std::vector<Form> forms{
      {{2, 3, 4, 12}, {.radius = 4, .bias = 1, .alpha = 0.5f, .beta = 0.75f}},
      {{2, 2, 3, 5}, {.radius = 2, .bias = 2, .alpha = 1, .beta = 0.5f}},
      {{3, 4}, {.radius = 7, .bias = 1, .alpha = 2, .beta = 1}},  // window covers all channels
      {{4, 6}, {.radius = 0, .bias = 0.5f, .alpha = 1, .beta = 0.75f}},
      {{3, 20, 20, 16}, {.radius = 4, .bias = 1, .alpha = 0.001f / 9, .beta = 0.75f}},  // several threads
  };
  for (const auto& [x, options] : forms)
    check_op({.name = concat("local_response_norm ", x),
              .inputs = {random_array(x, 1, -2, 2)},
              .op = [o = options](Tape& t, const std::vector<Var>& v) { return local_response_norm(t, v[0], o); },
              .reference = [o = options](const std::vector<Array>& a) { return naive_response_norm(a[0], o); }});
}

TEST(LocalResponseNorm, RefusesWhatMakesNoSense) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.constant(context->zeros({1, 4}));
  expect_error([&] { local_response_norm(tape, x, {.radius = -1}); }, Fault::config, "radius -1");
  expect_error([&] { local_response_norm(tape, x, {.bias = 0}); }, Fault::config, "bias 0");
  expect_error([&] { local_response_norm(tape, tape.constant(context->zeros({}))); }, Fault::config, "[..., c]");
}

}  // namespace
}  // namespace dtrain
