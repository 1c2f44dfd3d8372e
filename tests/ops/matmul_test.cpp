// The fully connected layer against a matrix product in double precision.
#include "dtrain/ops/matmul.h"

#include "tests/ops/matrix_reference.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

OpCase linear_case(int64_t n, int64_t in, int64_t out, bool bias) {
  Arrays inputs{random_array({n, in}, 1), random_array({out, in}, 2)};
  if (bias) inputs.push_back(random_array({out}, 3));
  return {.name = concat("linear ", n, " x ", in, " -> ", out, bias ? " + bias" : ""),
          .inputs = inputs,
          .op = [](Tape& t, const Vars& v) { return linear(t, v[0], v[1], v.size() > 2 ? &v[2] : nullptr); },
          .reference = [](const Arrays& a) { return linear_reference(a[0], a[1], a.size() > 2 ? &a[2] : nullptr); },
          .roles = {Role::activation, Role::weight, Role::parameter}};
}

TEST(Linear, ValueAndGradients) {
  check_op({linear_case(1, 1, 1, false), linear_case(1, 7, 3, true), linear_case(4, 5, 6, false),
            linear_case(16, 100, 33, true), linear_case(130, 64, 48, true)});
}

// The weights' gradient needs x and x's the weights: each must be kept where the other is a constant.
TEST(Linear, WithOneSideConstant) {
  const Array x = random_array({3, 4}, 1), w = random_array({2, 4}, 2);
  check_op({{.name = "constant x",
             .inputs = {w},
             .op = [=](Tape& t, const Vars& v) { return linear(t, t.constant(to_device(t.context(), x)), v[0]); },
             .reference = [=](const Arrays& a) { return linear_reference(x, a[0]); },
             .f32_only = true},
            {.name = "constant w",
             .inputs = {x},
             .op = [=](Tape& t, const Vars& v) { return linear(t, v[0], t.constant(to_device(t.context(), w))); },
             .reference = [=](const Arrays& a) { return linear_reference(a[0], w); },
             .f32_only = true}});
}

TEST(Linear, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.constant(context->zeros({2, 3})), w = tape.constant(context->zeros({4, 5}));
  expect_error([&] { linear(tape, x, w); }, Fault::config, "[2, 3] and [4, 5]");
  const Var fits = tape.constant(context->zeros({4, 3}));
  expect_error([&] { linear(tape, x, fits, &x); }, Fault::config, "[2, 3] of f32 for 4 outputs");
}

}  // namespace
}  // namespace dtrain
