// Transposed convolution against GEMM and col2im in double precision.
#include "dtrain/ops/conv_transpose2d.h"

#include "tests/ops/matrix_reference.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

struct TransposeCase {
  Shape x, w;
  Conv2dOptions options;
};

const std::vector<TransposeCase>& transpose_cases() {
  static const std::vector<TransposeCase> table{
      {{2, 3, 4, 8}, {8, 2, 2, 16}, {.stride = 2}},  // mask head
      {{3, 7, 7, 32}, {32, 2, 2, 24}, {.stride = 2}},
      {{1, 4, 3, 3}, {3, 3, 3, 5}, {.stride = 2, .padding = 1}},
      {{2, 3, 3, 4}, {4, 4, 2, 3}, {.stride = {2, 1}, .padding = {1, 0, 0, 1}}},
      {{1, 2, 5, 4}, {4, 2, 3, 6}, {.stride = {2, 3}}},
      {{1, 4, 4, 6}, {6, 3, 3, 7}, {.stride = 1, .padding = 1}},
      {{2, 3, 2, 5}, {5, 1, 1, 4}, {}},
  };
  return table;
}

TEST(ConvTranspose2d, ValueAndGradient) {
  for (const auto& [x, w, options] : transpose_cases()) {
    const std::string name = concat("conv_transpose2d ", x, " by ", w);
    check_op(
        {.name = name,
         .inputs = {random_array(x, 1), random_array(w, 2)},
         .op = [o = options](Tape& t, const Vars& v) { return conv_transpose2d(t, v[0], v[1], nullptr, o); },
         .reference = [o = options](const Arrays& a) { return conv_transpose2d_reference(a[0], a[1], nullptr, o); },
         .roles = {Role::activation, Role::weight}});
    check_op({.name = name + " with bias",
              .inputs = {random_array(x, 1), random_array(w, 2), random_array({w[3]}, 3)},
              .op = [o = options](Tape& t, const Vars& v) { return conv_transpose2d(t, v[0], v[1], &v[2], o); },
              .reference = [o = options](const Arrays& a) { return conv_transpose2d_reference(a[0], a[1], &a[2], o); },
              .roles = {Role::activation, Role::weight, Role::parameter}});
  }
}

TEST(ConvTranspose2d, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const auto zeros = [&](const Shape& shape) { return tape.constant(context->zeros(shape)); };
  const Var x = zeros({1, 4, 4, 8}), w = zeros({8, 2, 2, 3}), bias = zeros({8});
  expect_error([&] { conv_transpose2d(tape, x, zeros({4, 2, 2, 8}), nullptr, {}); }, Fault::config, "[4, 2, 2, 8]");
  expect_error([&] { conv_transpose2d(tape, x, w, &bias, {}); }, Fault::config, "expected [3] of f32");
  expect_error([&] { conv_transpose2d(tape, x, w, nullptr, {.groups = 2}); }, Fault::config, "2 groups");
  expect_error([&] { conv_transpose2d(tape, x, w, nullptr, {.padding = 3}); }, Fault::config, "would be");
  expect_error([&] { conv_transpose2d(tape, x, w, nullptr, {.stride = 0}); }, Fault::config, "stride 0");
}

}  // namespace
}  // namespace dtrain
