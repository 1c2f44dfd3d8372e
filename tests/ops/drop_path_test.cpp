#include "dtrain/ops/drop_path.h"

#include <algorithm>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// Factor of an image's elements, 0 if dropped: the header's rule, from the random numbers.
double kept_factor(const DropPathOptions& options, uint64_t seed, uint64_t step, uint64_t image) {
  double rate = options.rate;
  if (options.steps > 0) rate *= std::min(1.0, static_cast<double>(step) / static_cast<double>(options.steps));
  return unit_float(Philox::block(seed, 0, step << 32 | image)[0]) < rate ? 0 : 1 / (1 - rate);
}

TEST(DropPath, ValueAndGradient) {
  for (const int64_t steps : {0, 100, 12}) {
    OpCase test;
    test.name = concat("drop_path over ", steps, " steps");
    test.inputs = {random_array({9, 3, 2, 5}, 1)};
    const DropPathOptions options{.rate = 0.5f, .steps = steps};
    test.op = [options](Tape& tape, const std::vector<Var>& in) {
      tape.context().set_scalars({.step = 60, .seed = 34});
      return drop_path(tape, in[0], options);
    };
    test.reference = [options](const std::vector<Array>& in) {
      Array y = in[0];
      for (int64_t i = 0; i < y.count(); ++i) y[i] *= kept_factor(options, 34, 60, static_cast<uint64_t>(i / 30));
      return y;
    };
    check_op(test);
  }
}

TEST(DropPath, DropsWholeImagesMoreAndMoreOften) {
  for (const auto& context : devices()) {
    const Tensor ones = to_device(*context, Array({4000, 2}, 1));
    const auto dropped = [&](uint64_t step) {
      context->set_scalars({.step = step});
      Tape tape(*context);
      const auto y =
          values_of<float>(*context, drop_path(tape, tape.constant(ones), {.rate = 0.4f, .steps = 10}).value);
      for (size_t i = 0; i < y.size(); i += 2) EXPECT_EQ(y[i], y[i + 1]);
      return static_cast<double>(std::ranges::count(y, 0.0f)) / static_cast<double>(y.size());
    };
    EXPECT_EQ(dropped(0), 0);
    EXPECT_NEAR(dropped(5), 0.2, 0.03);
    EXPECT_NEAR(dropped(10), 0.4, 0.03);
    EXPECT_NEAR(dropped(1000), 0.4, 0.03);
  }
}

TEST(DropPath, IsTheIdentityInEvalAndRefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  const Array x = random_array({3, 4}, 1);
  Tape eval(*context, Mode::eval), train(*context);
  EXPECT_EQ(to_host(*context, drop_path(eval, eval.constant(to_device(*context, x)), {.rate = 0.5f}).value).values,
            x.values);
  expect_error([&] { drop_path(train, train.constant(to_device(*context, x)), {.rate = 1}); }, Fault::config,
               "expected a rate in [0, 1)");
}

}  // namespace
}  // namespace dtrain
