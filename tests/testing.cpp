#include "tests/testing.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "libdtrain/core/rng.h"

namespace dtrain {
namespace {

constexpr double kDifferenceStep = 1e-5;  // the reference is smooth and in double precision
constexpr int64_t kSamples = 32;          // elements of an input whose gradient is compared

double largest(const Array& array) {
  double result = 0;
  for (double value : array.values) result = std::max(result, std::abs(value));
  return result;
}

double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) sum += a[i] * b[i];
  return sum;
}

// previous + <weights, y>: the scalar that is differentiated. Keeps no value alive, as an op that saves nothing.
Var probe(Tape& tape, const Var& y, const Array& weights, const Var* previous = nullptr) {
  Context& context = tape.context();
  const Var before = previous ? *previous : tape.constant(to_device(context, Array({1})));
  const double sum = dot(to_host(context, y.value), weights) + to_host(context, before.value)[0];
  const Var handle{{}, y.slot}, before_handle{{}, before.slot};
  return tape.record("probe", to_device(context, Array({1}, sum)), {&y, &before},
                     [handle, before_handle, weights](Tape& t, const Tensor& dloss) {
                       t.pass_grad(before_handle, dloss);
                       const auto target = t.grad_target(handle);
                       if (!target) return;
                       Array dy = target->add ? to_host(t.context(), target->dx) : Array(weights.shape);
                       for (int64_t i = 0; i < dy.count(); ++i) dy[i] += weights[i];
                       const std::vector<float> values(dy.values.begin(), dy.values.end());
                       t.context().upload(values.data(), target->dx);
                     });
}

struct Outcome {
  Array y;
  std::vector<Array> dx;
  bool operator==(const Outcome& other) const {
    auto equal = [](const Array& a, const Array& b) {
      return std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0;
    };
    return equal(y, other.y) && std::equal(dx.begin(), dx.end(), other.dx.begin(), equal);
  }
};

// `others`, where given, are weights of a second consumer of each input, whose gradient is there before the op's.
Outcome run(Context& context, const OpCase& test, const Array& weights, const std::vector<Array>* others = nullptr) {
  poison(context);
  Tape tape(context);
  std::vector<Var> inputs;
  for (const Array& input : test.inputs) inputs.push_back(tape.variable(to_device(context, input)));
  const Var y = test.op(tape, inputs);
  Outcome outcome{to_host(context, y.value), {}};
  Var loss = probe(tape, y, weights);
  for (size_t i = 0; others && i < inputs.size(); ++i) loss = probe(tape, inputs[i], (*others)[i], &loss);
  tape.backward(loss);
  for (const Var& input : inputs) {
    const Tensor& dx = tape.grad(input);
    outcome.dx.push_back(dx ? to_host(context, dx) : Array(input.shape()));
  }
  return outcome;
}

// The elements compared: all of a small input, else kSamples drawn ones.
std::vector<int64_t> sampled(int64_t count) {
  std::vector<int64_t> elements;
  RandomStream random(17, static_cast<uint64_t>(count));
  for (int64_t i = 0; i < std::min(count, kSamples); ++i)
    elements.push_back(count <= kSamples ? i : random.below(static_cast<uint32_t>(count)));
  return elements;
}

void check_gradient(const OpCase& test, size_t input, const Array& weights, const Array& dx, double bound) {
  const std::string what = concat(test.name, ": gradient of input ", input);
  const double scale = largest(dx);
  ASSERT_GT(scale, 0) << what << " is zero everywhere";
  std::vector<Array> inputs = test.inputs;
  const double middle = dot(test.reference(inputs), weights);
  auto moved = [&](int64_t element, double step) {
    const double kept = inputs[input][element];
    inputs[input][element] = kept + step;
    const double value = dot(test.reference(inputs), weights);
    inputs[input][element] = kept;
    return value;
  };
  int compared = 0;
  for (int64_t element : sampled(dx.count())) {
    const double above = moved(element, kDifferenceStep), below = moved(element, -kDifferenceStep);
    const double right = (above - middle) / kDifferenceStep, left = (middle - below) / kDifferenceStep;
    if (test.kinks && std::abs(right - left) > 1e-3 * scale) continue;
    ++compared;
    const double expected = (above - below) / (2 * kDifferenceStep);
    EXPECT_LE(std::abs(dx[element] - expected), bound * (std::abs(expected) + scale))
        << what << " at element " << element << " of " << dx.shape << ": " << dx[element] << ", expected " << expected
        << " (functional " << below << " / " << middle << " / " << above << ")";
  }
  EXPECT_GE(2 * compared, std::min(dx.count(), kSamples)) << what << ": too many elements at a kink";
}

void check_training(Context& context, const OpCase& test, const Array& expected) {
  const Array weights = random_array(expected.shape, 1);
  const Bounds bounds = bounds_of(DType::f32);
  const Outcome first = run(context, test, weights);
  expect_close(first.y, expected, bounds.value, test.name);
  for (size_t i = 0; i < test.inputs.size(); ++i) check_gradient(test, i, weights, first.dx[i], bounds.gradient);
  EXPECT_TRUE(first == run(context, test, weights)) << test.name << ": two runs differ";

  std::vector<Array> others;
  for (size_t i = 0; i < test.inputs.size(); ++i) others.push_back(random_array(test.inputs[i].shape, 2 + i));
  const Outcome added = run(context, test, weights, &others);
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    Array sum = first.dx[i];
    for (int64_t e = 0; e < sum.count(); ++e) sum[e] += others[i][e];
    expect_close(added.dx[i], sum, bounds.gradient, concat(test.name, ": gradient of input ", i, " added to another"));
  }
}

void check_eval(Context& context, const OpCase& test, const Array& expected) {
  poison(context);
  Tape tape(context, Mode::eval);
  std::vector<Var> inputs;
  for (const Array& input : test.inputs) inputs.push_back(tape.variable(to_device(context, input)));
  const Var y = test.op(tape, inputs);
  expect_close(to_host(context, y.value), expected, bounds_of(DType::f32).value, test.name);
  EXPECT_EQ(tape.recorded(), 0u) << test.name << ": recorded in eval mode";
}

std::filesystem::path from_environment(const char* name, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::filesystem::path(value) : otherwise;
}

}  // namespace

Array random_array(Shape shape, uint64_t seed, float low, float high) {
  Array array(shape);
  RandomStream random(seed, 0);
  for (double& value : array.values) value = random.uniform(low, high);
  return array;
}

Tensor to_device(Context& context, const Array& array) {
  return to_device(context, array.shape, std::vector<float>(array.values.begin(), array.values.end()));
}

Array to_host(Context& context, const Tensor& tensor) {
  const std::vector<float> values = values_of<float>(context, tensor);
  return {tensor.shape(), std::vector<double>(values.begin(), values.end())};
}

std::vector<std::unique_ptr<Context>> devices() {
  std::vector<std::unique_ptr<Context>> result;
  result.push_back(make_cpu_context());
  return result;
}

void poison(Context& context) {
  const int64_t bytes = int64_t{4} << 20;
  const Tensor block = context.empty({bytes}, DType::u8);
  context.upload(std::vector<uint8_t>(static_cast<size_t>(bytes), 0xFF).data(), block);
}

Bounds bounds_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return {1e-2, 2e-2};
    case DType::f16:
      return {2e-3, 4e-3};
    default:
      return {1e-5, 2e-5};
  }
}

void expect_close(const Array& actual, const Array& expected, double bound, const std::string& what) {
  ASSERT_EQ(actual.shape, expected.shape) << what;
  const double scale = largest(expected);
  int64_t worst = -1, wrong = 0;
  double excess = 0;
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double limit = bound * (std::abs(expected[i]) + scale), error = std::abs(actual[i] - expected[i]);
    if (error <= limit) continue;
    ++wrong;
    if (worst < 0 || error - limit > excess || std::isnan(error)) worst = i, excess = error - limit;
  }
  EXPECT_EQ(wrong, 0) << what << ": " << wrong << " of " << expected.count() << " elements of " << expected.shape
                      << " are off, the worst at " << worst << ": " << actual[worst] << ", expected "
                      << expected[worst];
}

void check_op(const OpCase& test) {
  SCOPED_TRACE(test.name);
  const Array expected = test.reference(test.inputs);
  ASSERT_GT(largest(expected), 0) << test.name << ": the reference is zero everywhere";
  for (const auto& context : devices()) {
    SCOPED_TRACE(concat(context->device()));
    if (test.mode == Mode::train)
      check_training(*context, test, expected);
    else
      check_eval(*context, test, expected);
  }
}

void check_op(const std::vector<OpCase>& tests) {
  for (const OpCase& test : tests) check_op(test);
}

void expect_error(const std::function<void()>& action, Fault fault, const std::string& part) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "\"" << part << "\" is not in: " << error.what();
    return;
  }
  ADD_FAILURE() << "no Error was thrown; expected one with \"" << part << "\"";
}

std::filesystem::path source_dir() { return from_environment("DTRAIN_SOURCE_DIR", std::filesystem::current_path()); }
std::filesystem::path bin_dir() { return from_environment("DTRAIN_BIN_DIR", source_dir() / "build" / "bin"); }
std::filesystem::path test_data(const std::string& name) {
  return from_environment("DTRAIN_TEST_DATA", source_dir() / ".." / "shared" / "data") / name;
}

TempDirectory::TempDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "dtrain-test-XXXXXX").string();
  DT_CHECK(mkdtemp(name.data()), "cannot create a directory like ", name, ": ", std::strerror(errno));
  path_ = name;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dtrain
