#include "dtrain/ops/subsample.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Subsample, ValueAndGradient) {
  for (const auto& [shape, stride, offset] : std::vector<std::tuple<Shape, int, int>>{{{2, 6, 6, 5}, 2, 1},
                                                                                      {{1, 7, 5, 8}, 2, 1},
                                                                                      {{1, 7, 5, 3}, 2, 0},
                                                                                      {{2, 4, 9, 3}, 3, 2},
                                                                                      {{1, 1, 1, 4}, 1, 0}}) {
    OpCase test;
    test.name = concat("subsample ", shape, " by ", stride, " from ", offset);
    test.inputs = {random_array(shape, 1)};
    test.exact = true;
    test.op = [=](Tape& tape, const std::vector<Var>& in) { return subsample(tape, in[0], stride, offset); };
    test.reference = [=](const std::vector<Array>& in) {
      const Array& x = in[0];
      Array y({x.dim(0), (x.dim(1) + stride - 1) / stride, (x.dim(2) + stride - 1) / stride, x.dim(3)});
      for (int64_t n = 0; n < y.dim(0); ++n)
        for (int64_t p = 0; p < y.dim(1); ++p)
          for (int64_t q = 0; q < y.dim(2); ++q)
            for (int64_t c = 0; c < y.dim(3); ++c) {
              const int64_t h = p * stride + offset, w = q * stride + offset;
              if (h < x.dim(1) && w < x.dim(2)) y.at(n, p, q, c) = x.at(n, h, w, c);
            }
      return y;
    };
    check_op(test);
  }
}

TEST(Subsample, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context, Mode::eval);
  const Var x = tape.constant(to_device(*context, random_array({2, 4, 4, 3}, 1)));
  expect_error([&] { subsample(tape, x, 2, 2); }, Fault::config, "expected [n, h, w, c] and an offset");
}

}  // namespace
}  // namespace dtrain
