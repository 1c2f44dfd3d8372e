// Nearest up-sampling against its definition.
#include "dtrain/ops/upsample.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

Array naive_upsample(const Array& x, int64_t height, int64_t width) {
  Array y({x.dim(0), height, width, x.dim(3)});
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; ++j)
        for (int64_t c = 0; c < x.dim(3); ++c)
          y.at(n, i, j, c) = x.at(n, i * x.dim(1) / height, j * x.dim(2) / width, c);
  return y;
}

TEST(Upsample, Nearest) {
  const std::vector<std::pair<Shape, Shape>> cases{{{2, 3, 4, 5}, {2, 6, 8, 5}},
                                                   {{1, 5, 3, 8}, {1, 9, 7, 8}},
                                                   {{1, 1, 1, 3}, {1, 4, 1, 3}},
                                                   {{2, 4, 5, 16}, {2, 4, 5, 16}},
                                                   {{2, 20, 25, 40}, {2, 40, 50, 40}}};
  for (const auto& [x, y] : cases) {
    const int64_t h = y[1], w = y[2];
    check_op({.name = concat("upsample_nearest ", x, " to ", y),
              .inputs = {random_array(x, 1)},
              .op = [=](Tape& t, const Vars& v) { return upsample_nearest(t, v[0], h, w); },
              .reference = [=](const Arrays& a) { return naive_upsample(a[0], h, w); },
              .exact = true});
    check_op({.name = concat("upsample_nearest ", x, " onto ", y),
              .inputs = {random_array(x, 1), random_array(y, 2)},
              .op = [=](Tape& t, const Vars& v) { return upsample_nearest(t, v[0], h, w, &v[1]); },
              .reference =
                  [=](const Arrays& a) {
                    Array sum = naive_upsample(a[0], h, w);
                    for (int64_t i = 0; i < sum.count(); ++i) sum[i] += a[1][i];
                    return sum;
                  },
              .exact = true});
  }
}

TEST(Upsample, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.constant(context->zeros({1, 4, 4, 2})), base = tape.constant(context->zeros({1, 8, 8, 3}));
  expect_error([&] { upsample_nearest(tape, x, 3, 8); }, Fault::config, "to 3 x 8");
  expect_error([&] { upsample_nearest(tape, x, 4, 40000); }, Fault::config, "at most 32768");
  expect_error([&] { upsample_nearest(tape, x, 8, 8, &base); }, Fault::config, "base [1, 8, 8, 3]");
  expect_error([&] { upsample_nearest(tape, tape.constant(context->zeros({4, 4})), 8, 8); }, Fault::config, "[4, 4]");
}

}  // namespace
}  // namespace dtrain
