#include "dtrain/ops/relu6.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Relu6, ValueAndGradient) {
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{13}, Shape{64, 1000}}) {
    OpCase test;
    test.name = "relu6";
    test.inputs = {random_array(shape, 1, -4, 10)};
    test.kinks = true;
    test.exact = true;
    test.op = [](Tape& tape, const std::vector<Var>& in) { return relu6(tape, in[0]); };
    test.reference = [](const std::vector<Array>& in) {
      Array y = in[0];
      for (double& value : y.values) value = std::clamp(value, 0.0, 6.0);
      return y;
    };
    check_op(test);
  }
}

TEST(Relu6, KeepsNan) {
  for (const auto& context : devices()) {
    Tape tape(*context, Mode::eval);
    const Array x({2}, {std::numeric_limits<double>::quiet_NaN(), 7});
    const Array y = to_host(*context, relu6(tape, tape.constant(to_device(*context, x))).value);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], 6);
  }
}

}  // namespace
}  // namespace dtrain
