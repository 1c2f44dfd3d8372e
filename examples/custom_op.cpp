// Custom op and model: softplus(x) = log(1 + exp(x)), checked against a double-precision reference and finite
// differences, then used in a network that separates points inside a circle from points outside.
#include <cmath>
#include <cstdio>

#include <dtrain/dtrain.h>
#include <dtrain/testing/check_op.h>

namespace dt = dtrain;

// An op computes its output and records a closure that captures what its gradient needs. This one is for CPUs; on a GPU
// it would launch kernels on cuda_stream(context).
dt::Var softplus(dt::Tape& tape, const dt::Var& x) {
  dt::Context& context = tape.context();
  DT_CHECK(context.is_cpu() && x.value.dtype() == dt::DType::f32, "softplus: expected f32 on a CPU, found ",
           x.value.dtype(), " on ", context.device());
  const dt::Tensor y = context.empty(x.shape());
  const auto from = x.value.span<float>(), to = y.span<float>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::fmax(from[i], 0.0f) + std::log1p(std::exp(-std::fabs(from[i])));
  return tape.record("softplus", y, {&x}, [x](dt::Tape& t, const dt::Tensor& dy) {
    const auto target = t.grad_target(x);
    if (!target) return;
    const auto in = x.value.span<float>(), above = dy.span<float>(), dx = target->dx.span<float>();
    for (size_t i = 0; i < in.size(); ++i) {
      const float gradient = above[i] / (1 + std::exp(-in[i]));
      dx[i] = target->add ? dx[i] + gradient : gradient;
    }
  });
}

// A model is a struct of layers that registers its parameters under a path.
struct Network {
  explicit Network(dt::ParameterStore& store)
      : hidden(store, "hidden", 2, 16, dt::Init::normal(1)), out(store, "out", 16, 2, dt::Init::normal(0.3f)) {}
  dt::Var operator()(dt::Tape& tape, const dt::Var& x) const { return out(tape, softplus(tape, hidden(tape, x))); }

  dt::Linear hidden, out;
};

int main() try {
  const auto context = dt::make_cpu_context();
  dt::check_op(*context, {.name = "softplus",
                          .inputs = {dt::random_array({5, 7}, /*seed=*/1, -4, 4)},
                          .op = [](dt::Tape& tape, const std::vector<dt::Var>& in) { return softplus(tape, in[0]); },
                          .reference =
                              [](const std::vector<dt::Array>& in) {
                                dt::Array y(in[0].shape);
                                for (int64_t i = 0; i < y.count(); ++i) y[i] = std::log1p(std::exp(in[0][i]));
                                return y;
                              },
                          .f32_only = true});
  std::puts("softplus: value and gradient agree with the reference");

  dt::ParameterStore store(*context);
  const Network network(store);
  store.allocate(/*seed=*/1);
  dt::Optimizer optimizer(store, {.update = {.rule = dt::UpdateRule::adam}});
  dt::Trainer trainer(store, optimizer, {.base = 0.01});
  constexpr int64_t kPoints = 256;
  const dt::Tensor points = context->empty({kPoints, 2}), inside = context->empty({kPoints}, dt::DType::i32);
  double accuracy = 0;
  for (uint64_t step = 0; step < 300; ++step) {
    dt::RandomStream random(/*seed=*/1, step);
    for (int64_t i = 0; i < kPoints; ++i) {
      float* point = points.data<float>() + 2 * i;
      point[0] = random.uniform(-1, 1), point[1] = random.uniform(-1, 1);
      inside.data<int32_t>()[i] = std::hypot(point[0], point[1]) < 0.7f;
    }
    const dt::StepReport report = trainer.step([&](dt::Tape& tape, int) {
      return dt::softmax_cross_entropy(tape, network(tape, tape.constant(points)), inside);
    });
    accuracy = report.metric("top_1_accuracy");
    if (report.step % 100 == 0)
      std::printf("step %ju: loss %.3f, accuracy %.1f %%\n", uintmax_t{report.step}, report.loss, 100 * accuracy);
  }
  return accuracy > 0.9 ? 0 : 1;
} catch (const dt::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
