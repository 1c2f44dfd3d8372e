#include "dtrain/testing/check_op.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dtrain/core/rng.h"

namespace dtrain {
namespace {

constexpr double kDifferenceStep = 1e-5;  // step of central differences; the reference is in double
constexpr int64_t kSamples = 32;          // compared gradient elements per input

template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) throw Error(Fault::numeric, concat(parts...));
}

double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) sum += a[i] * b[i];
  return sum;
}

// previous + <weights, y>: the differentiated scalar. Saves no value, like an op that needs none.
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

// A case on one device in one compute type, with inputs exact in their types.
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

// `others`: weights of a second consumer of each input, whose gradient is written before the op's.
Outcome run(const Setting& setting, const Array& weights, const std::vector<Array>* others = nullptr) {
  const OpCase& test = setting.test;
  Context& context = setting.context;
  poison(context);
  Tape tape(context);
  const std::vector<Var> inputs = setting.upload(tape);
  const Var y = test.op(tape, inputs);
  require(y.shape() == weights.shape, test.name, ": shape ", y.shape(), ", expected ", weights.shape);
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

// Compared elements: all of a small input, else kSamples random ones.
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
  require(scale > 0, what, " is zero everywhere");
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
  double excess = 0;
  std::string worst;
  for (int64_t element : sampled(dx.count())) {
    const double above = moved(element, kDifferenceStep), below = moved(element, -kDifferenceStep);
    const double right = (above - middle) / kDifferenceStep, left = (middle - below) / kDifferenceStep;
    if (test.kinks && std::abs(right - left) > 1e-3 * scale) continue;
    ++compared;
    const double expected = (above - below) / (2 * kDifferenceStep);
    const double error = std::abs(dx[element] - expected), limit = bound * (std::abs(expected) + scale);
    if (error <= limit || (!worst.empty() && error - limit <= excess)) continue;
    excess = error - limit;
    worst = concat(what, ", at element ", element, " of ", dx.shape, ": ", dx[element], ", expected ", expected,
                   " (functional ", below, " / ", middle, " / ", above, ")");
  }
  require(worst.empty(), worst);
  require(2 * compared >= std::min(dx.count(), kSamples), what, ": too many elements at a kink");
}

// `cpu`: f32 results of the CPU, to compare another device with; both use the same arithmetic.
void check_training(const Setting& setting, const Array& expected, const Outcome* cpu) {
  const OpCase& test = setting.test;
  const Bounds bounds = bounds_of(setting.dtype);
  const Array weights = rounded(random_array(expected.shape, 1), setting.dtype);
  const Outcome first = run(setting, weights);
  require_close(first.y, expected, bounds.value, test.name);
  for (size_t i = 0; i < test.inputs.size(); ++i) check_gradient(test, i, weights, first.dx[i], bounds.gradient);
  require(first == run(setting, weights), test.name, ": two runs differ");
  if (cpu) {
    const Bounds between = test.exact ? Bounds{0, 0} : bounds;
    require_close(first.y, cpu->y, between.value, concat(test.name, ", against the CPU"));
    for (size_t i = 0; i < test.inputs.size(); ++i)
      require_close(first.dx[i], cpu->dx[i], between.gradient,
                    concat(test.name, ": gradient ", i, ", against the CPU"));
  }

  std::vector<Array> others;
  for (size_t i = 0; i < test.inputs.size(); ++i)
    others.push_back(rounded(random_array(test.inputs[i].shape, 2 + i), setting.gradient_of(i)));
  const Outcome added = run(setting, weights, &others);
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    Array sum = first.dx[i];
    for (int64_t e = 0; e < sum.count(); ++e) sum[e] += others[i][e];
    require_close(added.dx[i], sum, bounds.gradient, concat(test.name, ": gradient of input ", i, " added to another"));
  }
}

void check_eval(const Setting& setting, const Array& expected) {
  poison(setting.context);
  Tape tape(setting.context, Mode::eval);
  const Var y = setting.test.op(tape, setting.upload(tape));
  require_close(to_host(setting.context, y.value), expected, bounds_of(setting.dtype).value, setting.test.name);
  require(tape.recorded() == 0, setting.test.name, ": recorded in eval mode");
}

void check_op_as(Context& context, const OpCase& exact, DType dtype) {
  OpCase test = exact;
  test.name = concat(test.name, ", on ", context.device(), " in ", dtype);
  for (size_t i = 0; i < test.inputs.size(); ++i)
    test.inputs[i] = rounded(test.inputs[i], Setting{context, test, dtype}.type_of(i));
  const Array expected = test.reference(test.inputs);
  require(largest(expected) > 0, test.name, ": the reference is zero everywhere");
  const Setting setting{context, test, dtype};
  if (test.mode == Mode::eval) return check_eval(setting, expected);
  if (context.is_cpu() || dtype != DType::f32) return check_training(setting, expected, nullptr);
  const auto host = make_cpu_context();
  const Outcome cpu = run({*host, test, dtype}, random_array(expected.shape, 1));
  check_training(setting, expected, &cpu);
}

}  // namespace

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

void check_op(Context& context, const OpCase& test) {
  DT_CHECK(test.op && test.reference, "check_op: ", test.name, ": expected an op and a reference");
  check_op_as(context, test, DType::f32);
  if (test.f32_only) return;
  check_op_as(context, test, DType::bf16);
  if (context.is_cpu()) return;
  check_op_as(context, test, DType::f16);
}

}  // namespace dtrain
