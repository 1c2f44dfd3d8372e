// Element-wise ops against one-line references.
#include "dtrain/ops/pointwise.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

Array map(const Array& x, const std::function<double(int64_t)>& f) {
  Array y(x.shape);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = f(i);
  return y;
}

OpCase relu_case(Shape shape) {
  return {.name = concat("relu ", shape),
          .inputs = {random_array(shape, 3)},
          .op = [](Tape& t, const Vars& v) { return relu(t, v[0]); },
          .reference = [](const Arrays& a) { return map(a[0], [&](int64_t i) { return std::max(a[0][i], 0.0); }); },
          .kinks = true,
          .exact = true};
}

OpCase add_case(Shape shape) {
  return {.name = concat("add ", shape),
          .inputs = {random_array(shape, 3), random_array(shape, 4)},
          .op = [](Tape& t, const Vars& v) { return add(t, v[0], v[1]); },
          .reference = [](const Arrays& a) { return map(a[0], [&](int64_t i) { return a[0][i] + a[1][i]; }); },
          .exact = true};
}

OpCase add_relu_case(Shape shape) {
  return {.name = concat("add_relu ", shape),
          .inputs = {random_array(shape, 3), random_array(shape, 4)},
          .op = [](Tape& t, const Vars& v) { return add_relu(t, v[0], v[1]); },
          .reference =
              [](const Arrays& a) { return map(a[0], [&](int64_t i) { return std::max(a[0][i] + a[1][i], 0.0); }); },
          .kinks = true,
          .exact = true};
}

TEST(Pointwise, Relu) { check_op({relu_case({1}), relu_case({7}), relu_case({2, 5, 3, 4}), relu_case({9, 5000})}); }
TEST(Pointwise, Add) { check_op({add_case({1}), add_case({3, 11}), add_case({9, 5000})}); }
TEST(Pointwise, AddRelu) { check_op({add_relu_case({4}), add_relu_case({3, 11}), add_relu_case({9, 5000})}); }

TEST(Pointwise, AddOfATensorToItself) {
  check_op({.name = "x + x",
            .inputs = {random_array({13}, 5)},
            .op = [](Tape& t, const Vars& v) { return add(t, v[0], v[0]); },
            .reference = [](const Arrays& a) { return map(a[0], [&](int64_t i) { return 2 * a[0][i]; }); }});
}

TEST(Pointwise, Flatten) {
  check_op({.name = "flatten",
            .inputs = {random_array({2, 3, 4, 5}, 6)},
            .op = [](Tape& t, const Vars& v) { return flatten(t, v[0]); },
            .reference =
                [](const Arrays& a) {
                  return Array({2, 60}, a[0].values);
                }});
}

TEST(Pointwise, ReluKeepsNan) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var y = relu(tape, tape.constant(to_device(*context, Array({2}, {std::nan(""), -1}))));
    EXPECT_TRUE(std::isnan(to_host(*context, y.value)[0]));
  }
}

// Independent implementation of the documented random mask.
double dropout_reference(double x, float rate, uint64_t seed, uint64_t step, uint64_t stream, int64_t i) {
  const auto words = Philox::block(seed, stream, step << 32 | static_cast<uint64_t>(i / 4));
  return unit_float(words[static_cast<size_t>(i % 4)]) < rate ? 0 : x / (1 - static_cast<double>(rate));
}

TEST(Pointwise, Dropout) {
  for (const Shape shape : {Shape{5}, Shape{3, 7}, Shape{3, 20001}}) {
    const float rate = 0.3f;
    check_op({.name = concat("dropout ", shape),
              .inputs = {random_array(shape, 7)},
              .op =
                  [=](Tape& t, const Vars& v) {
                    t.context().set_scalars({.step = 12, .seed = 34});
                    return dropout(t, v[0], rate);
                  },
              .reference =
                  [=](const Arrays& a) {
                    return map(a[0], [&](int64_t i) { return dropout_reference(a[0][i], rate, 34, 12, 0, i); });
                  },
              .exact = true});
  }
}

TEST(Pointwise, DropoutDropsItsRateAndDiffersByCallStepAndMicroStep) {
  for (const auto& context : devices()) {
    const Tensor ones = to_device(*context, Array({40000}, 1));
    auto mask = [&](uint64_t step, int micro_step, int call) {
      context->set_scalars({.step = step});
      Tape tape(*context, Mode::train, micro_step);
      Var y;
      for (int i = 0; i <= call; ++i) y = dropout(tape, tape.constant(ones), 0.25f);
      return values_of<float>(*context, y.value);
    };
    const auto first = mask(0, 0, 0);
    EXPECT_NEAR(static_cast<double>(std::count(first.begin(), first.end(), 0.0f)) / 40000, 0.25, 0.01);
    EXPECT_EQ(first, mask(0, 0, 0));
    EXPECT_NE(first, mask(1, 0, 0));
    EXPECT_NE(first, mask(0, 1, 0));
    EXPECT_NE(first, mask(0, 0, 1));
  }
}

TEST(Pointwise, DropoutIsTheIdentityInEval) {
  check_op({.name = "dropout in eval",
            .inputs = {random_array({9}, 8)},
            .op = [](Tape& t, const Vars& v) { return dropout(t, v[0], 0.5f); },
            .reference = [](const Arrays& a) { return a[0]; },
            .mode = Mode::eval});
}

TEST(Pointwise, NormalizePixels) {
  PixelNormalization options{{10, 20, 30}, {0.5f, 0.25f, 2}};
  std::vector<uint8_t> bytes(2 * 5 * 7 * 3);
  RandomStream random(1, 1);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  for (const auto& context : devices())
    for (const int channels : {3, 4, 5, 8}) {
      options.channels = channels;
      Array expected({2, 5, 7, channels});
      for (int64_t i = 0; i < expected.count(); ++i) {
        const int64_t pixel = i / channels, c = i % channels;
        if (c < 3)
          expected[i] = (bytes[static_cast<size_t>(3 * pixel + c)] - double{options.mean[c]}) * options.scale[c];
      }
      const Shape shape{2, 5, 7, 3};
      poison(*context);
      const Tensor u8 = to_device(*context, shape, bytes);
      const Tensor f32 = to_device(*context, shape, std::vector<float>(bytes.begin(), bytes.end()));
      expect_close(to_host(*context, normalize_pixels(*context, u8, options)), expected, 1e-6, "u8");
      expect_close(to_host(*context, normalize_pixels(*context, f32, options)), expected, 1e-6, "f32");
    }
}

TEST(Pointwise, NormalizePixelsInSixteenBits) {
  const PixelNormalization options{{100, 110, 120}, {0.02f, 0.025f, 0.03f}};
  const Array pixels = random_array({1, 3, 67, 3}, 1, 0, 255);
  for (const auto& context : devices())
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const int channels : {3, 4, 8}) {
        if (context->is_cpu() && dtype == DType::f16) continue;
        PixelNormalization to = options;
        to.dtype = dtype;
        to.channels = channels;
        Array expected({1, 3, 67, channels});
        for (int64_t i = 0; i < 3 * 67; ++i)
          for (int64_t c = 0; c < 3; ++c)
            expected[channels * i + c] = (pixels[3 * i + c] - double{options.mean[c]}) * double{options.scale[c]};
        poison(*context);
        const Tensor y = normalize_pixels(*context, to_device(*context, pixels), to);
        EXPECT_EQ(y.dtype(), dtype);
        expect_close(to_host(*context, y), expected, bounds_of(dtype).value, concat(dtype, " ", channels));
      }
}

// Unaligned rows, and the elements before and after them.
TEST(Pointwise, RowsThatStartAnywhere) {
  const int64_t width = 37;
  for (const auto& context : devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (context->is_cpu() && dtype == DType::f16) continue;
      const Array x = rounded(random_array({5, width}, 1), dtype), y = rounded(random_array({5, width}, 2), dtype);
      const Tensor from = to_device(*context, x, dtype), to = to_device(*context, y, dtype);
      accumulate(*context, from.slice(1, 3), to.slice(1, 3));
      Array expected = y;
      for (int64_t i = width; i < 3 * width; ++i) expected[i] += x[i];
      expect_close(to_host(*context, to), expected, bounds_of(dtype).value, concat(dtype));
      Tape tape(*context);
      const Tensor maximum = relu(tape, tape.constant(from.slice(3, 5))).value;
      EXPECT_EQ(to_host(*context, maximum).values,
                map(Array({2, width}), [&](int64_t i) { return std::max(x[3 * width + i], 0.0); }).values);
    }
}

TEST(Pointwise, SixteenBitsAddToThirtyTwo) {
  for (const auto& context : devices())
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const int64_t count : {1, 3, 4, 1031}) {
        if (context->is_cpu() && dtype == DType::f16) continue;
        const Array x = rounded(random_array({count}, 1), dtype), y = random_array({count}, 2);
        const Tensor to = to_device(*context, y);
        accumulate(*context, to_device(*context, x, dtype), to);
        const Array sum = map(x, [&](int64_t i) { return static_cast<double>(static_cast<float>(x[i] + y[i])); });
        EXPECT_EQ(to_host(*context, to).values, sum.values) << dtype << " " << count;
        expect_error([&] { accumulate(*context, to, context->zeros({count}, dtype)); }, Fault::config, "f32 onto");
      }
}

TEST(Pointwise, ScalesInPlace) {
  for (const auto& context : devices())
    for (const int64_t count : {1, 3, 4, 1031}) {
      const Array x = random_array({count}, 1);
      const Tensor scaled = to_device(*context, x);
      scale_by(*context, scaled, 0.25f);
      EXPECT_EQ(to_host(*context, scaled).values, map(x, [&](int64_t i) { return x[i] / 4; }).values) << count;
      expect_error([&] { scale_by(*context, context->zeros({1}, DType::i32), 2); }, Fault::config, "expected f32");
    }
}

TEST(Pointwise, SeedIsTheLossScale) {
  for (const auto& context : devices()) {
    context->set_step_state({.loss_scale = 128});
    const Tensor dy = context->empty({1});
    seed_loss_gradient(*context, dy);
    EXPECT_EQ(to_host(*context, dy)[0], 128);
  }
}

TEST(Pointwise, RefusesWhatDoesNotFit) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var a = tape.constant(context->zeros({2, 3})), b = tape.constant(context->zeros({3, 2}));
    expect_error([&] { add(tape, a, b); }, Fault::config, "[2, 3] and [3, 2]");
    expect_error([&] { add_relu(tape, a, b); }, Fault::config, "[2, 3] and [3, 2]");
    expect_error([&] { dropout(tape, a, 1); }, Fault::config, "rate 1");
    expect_error([&] { normalize_pixels(*context, a.value, {}); }, Fault::config, "[n, h, w, 3]");
    const Tensor pixels = context->zeros({1, 2, 2, 3}), half = context->zeros({2, 3}, DType::bf16);
    expect_error([&] { normalize_pixels(*context, pixels, {.channels = 2}); }, Fault::config, "2 output channels");
    expect_error([&] { add(tape, a, tape.constant(half)); }, Fault::config, "f32 and bf16");
    expect_error([&] { seed_loss_gradient(*context, half.slice(0, 1)); }, Fault::config, "[1, 3] of bf16");
  }
}

}  // namespace
}  // namespace dtrain
