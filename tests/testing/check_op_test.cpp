// check_op itself: accepts a correct op and reports errors of others.
#include "dtrain/testing/check_op.h"

#include <cmath>
#include <memory>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

// Injected errors of y = x^2.
struct Spoilt {
  double value = 0, gradient = 0;  // added to each
  bool forgets_last = false;       // the last element of y is not written
  bool never_adds = false;         // overwrites a gradient instead of accumulating
  bool other_shape = false;
  double jitter = 0;  // added to every value of the second run
};

// On any device, through the host.
Var square(Tape& tape, const Var& x, const Spoilt& spoilt, double jitter) {
  Context& context = tape.context();
  Array values = to_host(context, x.value);
  for (double& value : values.values) value = value * value + spoilt.value + jitter;
  Tensor y = to_device(context, values, x.value.dtype());
  if (spoilt.forgets_last) {
    const Tensor whole = context.empty(y.shape(), y.dtype());
    const int64_t rows = y.dim(0) - 1;
    context.copy(y.slice(0, rows), whole.slice(0, rows));
    y = whole;
  }
  if (spoilt.other_shape) y = y.view({y.count()});
  return tape.record("square", y, {&x}, [x, spoilt](Tape& t, const Tensor& dy) {
    const auto target = t.grad_target(x);
    if (!target) return;
    Array dx = to_host(t.context(), x.value);
    const Array upstream = to_host(t.context(), dy);
    const bool add = target->add && !spoilt.never_adds;
    const Array old = add ? to_host(t.context(), target->dx) : Array(dx.shape);
    for (int64_t i = 0; i < dx.count(); ++i) dx[i] = 2 * dx[i] * upstream[i] + spoilt.gradient + old[i];
    t.context().copy(to_device(t.context(), dx, target->dx.dtype()), target->dx);
  });
}

OpCase square_case(const Spoilt& spoilt = {}) {
  const auto runs = std::make_shared<int>(0);
  return {.name = "square",
          .inputs = {random_array({3, 5}, 1)},
          .op = [=](Tape& t, const Vars& v) { return square(t, v[0], spoilt, (*runs)++ == 1 ? spoilt.jitter : 0); },
          .reference =
              [](const Arrays& a) {
                Array y = a[0];
                for (double& value : y.values) value *= value;
                return y;
              }};
}

TEST(CheckOp, PassesWhatIsRight) {
  for (const auto& context : devices()) check_op(*context, square_case());
}

TEST(CheckOp, SaysWhatIsWrong) {
  const std::pair<Spoilt, const char*> cases[] = {
      {{.value = 0.01}, "square, on cpu:0 in f32: 15 of 15 elements of [3, 5] are off, the worst at"},
      {{.gradient = 0.01}, "square, on cpu:0 in f32: gradient of input 0, at element"},
      {{.forgets_last = true}, ": 5 of 15 elements of [3, 5] are off, the worst at 14: "},
      {{.never_adds = true}, "gradient of input 0 added to another: 15 of 15 elements"},
      {{.other_shape = true}, "shape [15], expected [3, 5]"},
      {{.jitter = 1e-6}, "two runs differ"},
  };
  const auto context = make_cpu_context();
  for (const auto& [spoilt, text] : cases)
    expect_error([&] { check_op(*context, square_case(spoilt)); }, Fault::numeric, text);
}

TEST(CheckOp, RefusesCasesThatShowNothing) {
  const auto context = make_cpu_context();
  OpCase zero = square_case();
  zero.inputs = {Array({3, 5})};
  expect_error([&] { check_op(*context, zero); }, Fault::numeric, "the reference is zero everywhere");
  OpCase without = square_case();
  without.reference = nullptr;
  expect_error([&] { check_op(*context, without); }, Fault::config, "expected an op and a reference");
}

TEST(RequireClose, NamesTheWorstElement) {
  expect_error(
      [] {
        require_close(Array({3}, {1, 2.5, 3.1}), Array({3}, {1, 2, 3}), 1e-3, "it");
      },
      Fault::numeric, "it: 2 of 3 elements of [3] are off, the worst at 1: 2.5, expected 2");
  expect_error([] { require_close(Array({2}, {1, NAN}), Array({2}, {1, 2}), 1, "it"); }, Fault::numeric, "at 1: nan");
  expect_error([] { require_close(Array({2}), Array({1, 2}), 1, "it"); }, Fault::numeric, "shape [2], expected [1, 2]");
  require_close(Array({2}, {1, 2.001}), Array({2}, {1, 2}), 1e-3, "it");
}

}  // namespace
}  // namespace dtrain
