#include "tests/testing.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "apps/cli/environment.h"
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
                       t.context().copy(to_device(t.context(), dy, target->dx.dtype()), target->dx);
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

// One case on one device in one compute type; its inputs are exact in their types.
struct Setting {
  Context& context;
  const OpCase& test;
  DType dtype;

  DType type_of(size_t input) const { return test.role(input) == Role::parameter ? DType::f32 : dtype; }
  DType gradient_of(size_t input) const { return test.role(input) == Role::activation ? dtype : DType::f32; }
  std::vector<Var> upload(Tape& tape) const {
    std::vector<Var> inputs;
    for (size_t i = 0; i < test.inputs.size(); ++i)
      inputs.push_back(tape.variable(to_device(context, test.inputs[i], type_of(i)), gradient_of(i)));
    return inputs;
  }
};

// `others`, where given, are weights of a second consumer of each input, whose gradient is there before the op's.
Outcome run(const Setting& setting, const Array& weights, const std::vector<Array>* others = nullptr) {
  const OpCase& test = setting.test;
  Context& context = setting.context;
  poison(context);
  Tape tape(context);
  const std::vector<Var> inputs = setting.upload(tape);
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

// What the CPU gives in f32, where it is to be compared with: one of another device has the same arithmetic.
void check_training(const Setting& setting, const Array& expected, const Outcome* cpu) {
  const OpCase& test = setting.test;
  const Bounds bounds = bounds_of(setting.dtype);
  const Array weights = rounded(random_array(expected.shape, 1), setting.dtype);
  const Outcome first = run(setting, weights);
  expect_close(first.y, expected, bounds.value, test.name);
  for (size_t i = 0; i < test.inputs.size(); ++i) check_gradient(test, i, weights, first.dx[i], bounds.gradient);
  EXPECT_TRUE(first == run(setting, weights)) << test.name << ": two runs differ";
  if (cpu) {
    const Bounds between = test.exact ? Bounds{0, 0} : bounds;
    expect_close(first.y, cpu->y, between.value, concat(test.name, ", against the CPU"));
    for (size_t i = 0; i < test.inputs.size(); ++i)
      expect_close(first.dx[i], cpu->dx[i], between.gradient, concat(test.name, ": gradient ", i, ", against the CPU"));
  }

  std::vector<Array> others;
  for (size_t i = 0; i < test.inputs.size(); ++i)
    others.push_back(rounded(random_array(test.inputs[i].shape, 2 + i), setting.gradient_of(i)));
  const Outcome added = run(setting, weights, &others);
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    Array sum = first.dx[i];
    for (int64_t e = 0; e < sum.count(); ++e) sum[e] += others[i][e];
    expect_close(added.dx[i], sum, bounds.gradient, concat(test.name, ": gradient of input ", i, " added to another"));
  }
}

void check_eval(const Setting& setting, const Array& expected) {
  poison(setting.context);
  Tape tape(setting.context, Mode::eval);
  const Var y = setting.test.op(tape, setting.upload(tape));
  expect_close(to_host(setting.context, y.value), expected, bounds_of(setting.dtype).value, setting.test.name);
  EXPECT_EQ(tape.recorded(), 0u) << setting.test.name << ": recorded in eval mode";
}

void check_op_on(Context& context, const OpCase& exact, DType dtype) {
  SCOPED_TRACE(concat(context.device(), ", ", dtype));
  OpCase test = exact;
  for (size_t i = 0; i < test.inputs.size(); ++i)
    test.inputs[i] = rounded(test.inputs[i], Setting{context, test, dtype}.type_of(i));
  const Array expected = test.reference(test.inputs);
  ASSERT_GT(largest(expected), 0) << test.name << ": the reference is zero everywhere";
  const Setting setting{context, test, dtype};
  if (test.mode == Mode::eval) return check_eval(setting, expected);
  if (context.is_cpu() || dtype != DType::f32) return check_training(setting, expected, nullptr);
  const auto host = make_cpu_context();
  const Outcome cpu = run({*host, test, dtype}, random_array(expected.shape, 1));
  check_training(setting, expected, &cpu);
}

// A float's bits shortened to those of a bfloat16 or of an IEEE half, to nearest, ties to even.
uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float of_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

float of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}
uint16_t f16_bits(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(static_cast<double>(value));
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520) return sign | 0x7C00;
  // Units in the last place: halves are integers of them, and the encoding counts through the exponents.
  const int exponent = magnitude < std::ldexp(1.0, -14) ? -14 : std::ilogb(magnitude);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<uint16_t>(sign + (exponent + 14) * 1024 + units);
}

// Without a GPU a program that is to test GPUs says so in place of every test.
class NeedsDevices : public testing::Environment {
 public:
  void SetUp() override {
    std::string reason;
    if (tested_devices() == "gpu" && cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
  }
  static std::string tested_devices() {
    const char* kind = std::getenv("DTRAIN_TEST_DEVICES");
    return kind ? kind : "all";
  }
};
const testing::Environment* const kNeedsDevices = testing::AddGlobalTestEnvironment(new NeedsDevices);

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

Tensor to_device(Context& context, const Array& array, DType dtype) {
  const std::vector<float> values(array.values.begin(), array.values.end());
  if (dtype == DType::f32) return to_device(context, array.shape, values);
  DT_CHECK(dtype == DType::bf16 || dtype == DType::f16, "to_device: no floating-point type: ", dtype);
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), dtype == DType::bf16 ? bf16_bits : f16_bits);
  Tensor tensor = context.empty(array.shape, dtype);
  context.upload(bits.data(), tensor);
  return tensor;
}

Array to_host(Context& context, const Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    const std::vector<float> values = values_of<float>(context, tensor);
    return {tensor.shape(), std::vector<double>(values.begin(), values.end())};
  }
  DT_CHECK(tensor.dtype() == DType::bf16 || tensor.dtype() == DType::f16, "to_host: the tensor holds ", tensor.dtype());
  std::vector<uint16_t> bits(static_cast<size_t>(tensor.count()));
  context.download(tensor, bits.data(), "to_host");
  Array array(tensor.shape());
  std::transform(bits.begin(), bits.end(), array.values.begin(), tensor.dtype() == DType::bf16 ? of_bf16 : of_f16);
  return array;
}

Array rounded(const Array& array, DType dtype) {
  Array result = array;
  for (double& value : result.values) {
    const auto single = static_cast<float>(value);
    value = dtype == DType::bf16 ? of_bf16(bf16_bits(single)) : dtype == DType::f16 ? of_f16(f16_bits(single)) : single;
  }
  return result;
}

std::vector<std::unique_ptr<Context>> devices() {
  std::vector<std::unique_ptr<Context>> result;
  const std::string kind = NeedsDevices::tested_devices();
  if (kind != "gpu") result.push_back(make_cpu_context());
  if (kind != "cpu" && cuda_device_count() > 0)
    result.push_back(make_gpu_context({.deterministic = true, .autotune = false}));
  return result;
}

std::unique_ptr<Context> make_gpu_context(const CudaOptions& options) {
  return make_cuda_context(cli::with_environment(options));
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
  for (const auto& context : devices()) {
    check_op_on(*context, test, DType::f32);
    if (context->is_cpu() || test.f32_only) continue;
    check_op_on(*context, test, DType::bf16);
    check_op_on(*context, test, DType::f16);
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
