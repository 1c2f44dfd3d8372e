// Row slices against a loop.
#include "dtrain/ops/slice_rows.h"

#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

Array rows_of_array(const Array& x, int64_t begin, int64_t end) {
  Shape shape{end - begin};
  for (int i = 1; i < x.shape.rank(); ++i) shape.append(x.dim(i));
  Array y(shape);
  const int64_t row = x.count() / x.dim(0);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = x[begin * row + i];
  return y;
}

OpCase slice_case(Shape shape, int64_t begin, int64_t end) {
  return {.name = concat("rows [", begin, ", ", end, ") of ", shape),
          .inputs = {random_array(shape, 1)},
          .op = [=](Tape& t, const Vars& v) { return slice_rows(t, v[0], begin, end); },
          .reference = [=](const Arrays& a) { return rows_of_array(a[0], begin, end); },
          .exact = true};
}

TEST(SliceRows, ValueAndGradients) {
  check_op({slice_case({5}, 1, 3), slice_case({4, 3}, 0, 4), slice_case({6, 2, 2, 8}, 4, 6), slice_case({3, 7}, 0, 1)});
}

// Gradients accumulate in shared rows only.
TEST(SliceRows, OfOneTensorAddUp) {
  check_op({.name = "rows [0, 3) and [2, 5)",
            .inputs = {random_array({6, 4}, 2)},
            .op = [](Tape& t, const Vars& v) { return add(t, slice_rows(t, v[0], 0, 3), slice_rows(t, v[0], 2, 5)); },
            .reference =
                [](const Arrays& a) {
                  Array y = rows_of_array(a[0], 0, 3);
                  const Array other = rows_of_array(a[0], 2, 5);
                  for (int64_t i = 0; i < y.count(); ++i) y[i] += other[i];
                  return y;
                }});
}

TEST(SliceRows, RefusesRowsThatAreNotThere) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.constant(context->zeros({3, 2}));
  expect_error([&] { slice_rows(tape, x, 1, 4); }, Fault::config, "rows [1, 4) of [3, 2]");
  expect_error([&] { slice_rows(tape, x, -1, 2); }, Fault::config, "rows [-1, 2)");
  expect_error([&] { slice_rows(tape, x, 2, 1); }, Fault::config, "rows [2, 1)");
  expect_error([&] { slice_rows(tape, tape.constant(context->zeros({})), 0, 0); }, Fault::config, "slice_rows");
}

}  // namespace
}  // namespace dtrain
