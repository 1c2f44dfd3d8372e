// Layers in int8 against those in f32 of what their bytes and whole numbers stand for.
#include "dtrain/ops/quantized_conv.h"

#include <cmath>
#include <cstring>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/ops/conv_bn_act.h"
#include "dtrain/ops/matmul.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/pool.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/ops/forced_algorithms.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct QuantizedCase {
  std::string name;
  Shape x, w;
  Conv2dOptions conv{};
};

const std::vector<QuantizedCase> kCases = {
    {"pointwise", {2, 9, 7, 40}, {70, 1, 1, 40}},
    {"more filters than pixels", {1, 3, 5, 24}, {200, 1, 1, 24}},
    {"one filter", {1, 6, 5, 20}, {1, 1, 1, 20}},
    {"window with strides", {2, 11, 10, 32}, {48, 3, 3, 32}, {.stride = {2, 2}, .padding = {1, 1, 1, 1}}},
    {"window", {1, 13, 16, 64}, {64, 3, 3, 64}, {.padding = {1, 1, 1, 1}}},
    {"panels of several taps", {1, 9, 8, 32}, {176, 3, 3, 32}, {.padding = {1, 1, 1, 1}}},
    {"dilated", {1, 12, 13, 32}, {33, 3, 2, 32}, {.padding = {2, 1, 0, 3}, .dilation = {2, 3}}},
    {"pixels of three channels", {2, 21, 18, 3}, {64, 7, 7, 3}, {.stride = {2, 2}, .padding = {3, 3, 3, 3}}},
    {"uneven padding of few channels", {1, 6, 9, 5}, {17, 2, 4, 5}, {.padding = {0, 1, 2, 3}}},
};

Array quantized(const Array& x, const QuantParams& form) {
  Array y = x;
  for (double& value : y.values) value = std::clamp(std::nearbyint(value / form.scale + form.zero), 0.0, 255.0);
  return y;
}

Array meant(Array bytes, const QuantParams& form) {
  for (double& value : bytes.values) value = (value - form.zero) * form.scale;
  return bytes;
}

// Filters that are whole numbers times a scale for each already: one number of each is 127, and any two others come to
// no more than 126.
Array whole_filters(const Shape& shape, uint64_t stream) {
  Array w = random_array(shape, stream, -1, 1);
  const size_t count = w.values.size() / static_cast<size_t>(shape[0]);
  for (size_t i = 0; i < w.values.size(); ++i) {
    double number = std::nearbyint(w.values[i] * 63);
    if (i % count == 0) number = 127;
    if (i % count == 1) number = 1;
    w.values[i] = number * 0.01f / static_cast<float>(1 + i / count % 7);
  }
  return w;
}

Tensor as_bytes(Context& context, const Array& bytes) {
  const Tensor x = context.empty(bytes.shape, DType::u8);
  for (int64_t i = 0; i < x.count(); ++i)
    x.data<uint8_t>()[i] = static_cast<uint8_t>(bytes.values[static_cast<size_t>(i)]);
  return x;
}

double largest_of(const Array& x) {
  double most = 0;
  for (const double value : x.values) most = std::max(most, std::fabs(value));
  return most;
}

void expect_near(const Array& found, const Array& expected, double bound) {
  ASSERT_EQ(found.values.size(), expected.values.size());
  for (size_t i = 0; i < found.values.size(); ++i) ASSERT_NEAR(found.values[i], expected.values[i], bound) << i;
}

constexpr QuantParams kImages{0.011f, 100}, kClosedImages{0.004f, 0}, kResiduals{0.02f, 128}, kSums{0.09f, 0},
    kRaisedSums{0.09f, 20}, kSignedSums{0.13f, 128};

struct Layer {
  Array x, w, residual;
  Tensor weights, gamma, beta;
  BatchNormState state;

  Layer(Context& context, const QuantizedCase& test)
      : x(random_array(test.x, 1, -1, 1)),
        w(whole_filters(test.w, 2)),
        residual(random_array(conv2d_shape(test.x, test.w, test.conv), 3, -2, 2)) {
    const Shape channels{test.w[0]};
    weights = to_device(context, w);
    gamma = to_device(context, random_array(channels, 4, -1, 1)),
    beta = to_device(context, random_array(channels, 5, -1, 1));
    state = {to_device(context, random_array(channels, 6, -1, 1)),
             to_device(context, random_array(channels, 7, 0.5f, 2))};
  }
  Tensor run(Tape& tape, const QuantizedCase& test, const Tensor& images, const Tensor& filters, const Tensor& sums,
             Activation activation) const {
    const Var added = tape.constant(sums);
    return conv_bn_act(tape, tape.constant(images), tape.constant(filters), test.conv, tape.constant(gamma),
                       tape.constant(beta), state, {}, activation, &added)
        .value;
  }
};

// From floats and bytes, into floats and bytes, with residuals that are floats or bytes.
TEST(QuantizedConv, AgreesWithFloatsOfTheSameNumbers) {
  std::set<std::string> names;
  for (const QuantizedCase& test : kCases)
    for (const auto& [isa, algorithm, context] : forced_contexts(test.x, test.w, test.conv, DType::u8))
      for (const QuantParams& images : {kImages, kClosedImages})
        for (const std::optional<QuantParams>& form : {std::optional<QuantParams>(), std::optional(kSums),
                                                       std::optional(kRaisedSums), std::optional(kSignedSums)}) {
          SCOPED_TRACE(concat(name_of(isa), " ", algorithm, " ", test.name, " ", int{images.zero}, " ",
                              form ? int{form->zero} : -1));
          names.insert(algorithm);
          const Layer layer(*context, test);
          const bool from_bytes = form && test.x[3] % 4 == 0;
          const Activation activation = form == kSignedSums ? Activation::none : Activation::relu;
          const Array bytes = quantized(layer.x, images), sums = quantized(layer.residual, kResiduals);
          Tape plain(*context, Mode::eval);
          const Array expected = to_host(
              *context, layer.run(plain, test, to_device(*context, meant(bytes, images)), layer.weights,
                                  to_device(*context, form ? meant(sums, kResiduals) : layer.residual), activation));
          const ParameterStore store(*context);
          PreparedWeights prepared(store);
          prepared.quantize({{layer.weights.raw(), {images, form ? std::optional(kResiduals) : std::nullopt, form}}});
          Tape tape(*context, prepared);
          const Tensor x = from_bytes ? as_bytes(*context, bytes) : to_device(*context, layer.x);
          const Tensor added = form ? as_bytes(*context, sums) : to_device(*context, layer.residual);
          poison(*context);
          const Tensor y = layer.run(tape, test, x, layer.weights, added, activation);
          ASSERT_EQ(y.dtype(), form ? DType::u8 : DType::f32);
          if (!form) {
            expect_near(to_host(*context, y), expected, 2e-6 * largest_of(expected));
            continue;
          }
          Array found = expected;
          for (int64_t i = 0; i < y.count(); ++i) found.values[static_cast<size_t>(i)] = y.data<uint8_t>()[i];
          expect_near(found, quantized(expected, *form), 1);  // of two neighbours where the sum is between them
          const double off = form->scale * 0.501 + 2e-6 * largest_of(expected);
          for (size_t i = 0; i < found.values.size(); ++i)
            if (found.values[i] > 0 && found.values[i] < 255) {
              ASSERT_NEAR((found.values[i] - form->zero) * form->scale, expected.values[i], off) << i;
            }
        }
  expect_all_algorithms(names, kCases[0].x, kCases[0].w, DType::u8);
}

// A residual that is given up becomes the result where both are of one type and nobody else has it.
TEST(QuantizedConv, TakesAResidualOfItsTypeThatNobodyElseHas) {
  for (const CpuIsa isa : instruction_sets())
    for (const QuantizedCase& test : kCases)
      for (const auto& [bytes_added, bytes_made] :
           {std::pair(false, false), std::pair(true, true), std::pair(true, false)}) {
        SCOPED_TRACE(concat(name_of(isa), " ", test.name, " ", bytes_added, " ", bytes_made));
        const auto context = context_of(isa);
        const Layer layer(*context, test);
        const auto form_of = [](bool bytes, const QuantParams& form) {
          return bytes ? std::optional(form) : std::optional<QuantParams>();
        };
        const ParameterStore store(*context);
        PreparedWeights prepared(store);
        prepared.quantize(
            {{layer.weights.raw(), {kImages, form_of(bytes_added, kResiduals), form_of(bytes_made, kSums)}}});
        Tape tape(*context, prepared);
        const Tensor x = to_device(*context, layer.x);
        const auto sums = [&, bytes = bytes_added] {
          return bytes ? as_bytes(*context, quantized(layer.residual, kResiduals))
                       : to_device(*context, layer.residual);
        };
        const Tensor expected = layer.run(tape, test, x, layer.weights, sums(), Activation::relu);
        Var added = tape.constant(sums());
        const void* const memory = added.value.raw();
        const ConvBnActLayer alone{tape.constant(layer.weights),
                                   test.conv,
                                   tape.constant(layer.gamma),
                                   tape.constant(layer.beta),
                                   layer.state,
                                   {},
                                   Activation::relu};
        const Tensor found = conv_bn_act(tape, tape.constant(x), {&alone, 1}, std::move(added)).value;
        EXPECT_EQ(found.raw() == memory, bytes_added == bytes_made);
        ASSERT_EQ(found.bytes(), expected.bytes());
        EXPECT_EQ(std::memcmp(found.raw(), expected.raw(), found.bytes()), 0);
      }
}

TEST(QuantizedConv, ALinearLayerIsOne) {
  const auto context = context_of(best_cpu_isa());
  const Array x = random_array({3, 40}, 1, 0, 1), w = whole_filters({17, 40}, 2);
  const Tensor weights = to_device(*context, w), bias = to_device(*context, random_array({17}, 3, -1, 1));
  Tape plain(*context, Mode::eval);
  const auto linear_of = [&](Tape& tape, const Tensor& images) {
    const Var b = tape.constant(bias);
    return to_host(*context, linear(tape, tape.constant(images), tape.constant(weights), &b).value);
  };
  const Array expected = linear_of(plain, to_device(*context, meant(quantized(x, kClosedImages), kClosedImages)));
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  prepared.quantize({{weights.raw(), {.x = kClosedImages}}});
  Tape tape(*context, prepared);
  expect_near(linear_of(tape, to_device(*context, x)), expected, 2e-6 * largest_of(expected));
  expect_near(linear_of(tape, as_bytes(*context, quantized(x, kClosedImages))), expected, 2e-6 * largest_of(expected));
}

TEST(QuantizedConv, BytesPassThroughReluAndMaxPool) {
  const auto context = context_of(best_cpu_isa());
  const Array bytes = quantized(random_array({2, 9, 10, 148}, 1, 0, 255), {1, 0});  // vectors, and a rest
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  Tape tape(*context, prepared);
  const Var x = tape.constant(as_bytes(*context, bytes));
  EXPECT_EQ(relu(tape, x).value.raw(), x.value.raw());
  const Tensor found = max_pool(tape, x, kResNetPool).value;
  const Array expected =
      to_host(*context, max_pool(tape, tape.constant(to_device(*context, bytes)), kResNetPool).value);
  ASSERT_EQ(found.dtype(), DType::u8);
  for (int64_t i = 0; i < found.count(); ++i)
    ASSERT_EQ(found.data<uint8_t>()[i], expected.values[static_cast<size_t>(i)]) << i;
}

TEST(QuantizedConv, RefusesOtherForms) {
  const QuantizedCase& test = kCases.front();
  const auto context = context_of(best_cpu_isa());
  const Layer layer(*context, test);
  const ParameterStore store(*context);
  PreparedWeights prepared(store);
  prepared.quantize({{layer.weights.raw(), {.x = kImages, .residual = kResiduals}}});
  Tape tape(*context, prepared);
  const Tensor x = to_device(*context, layer.x);
  const auto run = [&](const Tensor& images, const Tensor& sums) {
    layer.run(tape, test, images, layer.weights, sums, Activation::none);
  };
  EXPECT_THROW(run(x, to_device(*context, layer.residual)), Error);
  EXPECT_THROW(run(x, as_bytes(*context, quantized(random_array({1, 2, 2, 4}, 1, 0, 1), kImages))), Error);
  EXPECT_THROW(run(x.view(x.shape()).slice(0, 1), as_bytes(*context, quantized(layer.residual, kResiduals))), Error);
  // Bytes that reach a layer of floats.
  const Tensor others = to_device(*context, layer.w);
  EXPECT_THROW(
      conv2d(tape, tape.constant(as_bytes(*context, quantized(layer.x, kImages))), tape.constant(others), nullptr, {}),
      Error);
}

}  // namespace
}  // namespace dtrain
