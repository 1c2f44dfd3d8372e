// Overhead per op: dispatch, output allocation and recording in forward, closure and gradient allocation in backward.
// Times a chain of ops on eight floats, forward and backward together.
#include <benchmark/benchmark.h>

#include "dtrain/ops/matmul.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/pool.h"

namespace dtrain {
namespace {

constexpr int kChain = 1000;

// Runs `op` kChain times on its own output; `mode` train adds the backward pass.
template <class Op>
void chain(benchmark::State& state, Mode mode, Op&& op) {
  const auto context = make_cpu_context({.threads = 1});
  const Tensor x = context->zeros({1, 1, 1, 8});
  const Tensor ones = context->zeros({1, 8});
  for (auto _ : state) {
    Tape tape(*context, mode);
    Var y = tape.variable(x);
    for (int i = 0; i < kChain; ++i) y = op(tape, y);
    if (mode == Mode::train) tape.backward(linear(tape, flatten(tape, y), tape.constant(ones), nullptr));
    benchmark::DoNotOptimize(y.value.raw());
  }
  state.counters["per_op"] = benchmark::Counter(static_cast<double>(state.iterations()) * kChain,
                                                benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void relu_step(benchmark::State& state) {
  chain(state, Mode::train, [](Tape& tape, const Var& x) { return relu(tape, x); });
}
void relu_forward_only(benchmark::State& state) {
  chain(state, Mode::eval, [](Tape& tape, const Var& x) { return relu(tape, x); });
}
void add_step(benchmark::State& state) {
  chain(state, Mode::train, [](Tape& tape, const Var& x) { return add(tape, x, x); });
}
void max_pool_step(benchmark::State& state) {
  const PoolOptions one{.kernel = 1, .stride = 1, .padding = 0};
  chain(state, Mode::train, [&one](Tape& tape, const Var& x) { return max_pool(tape, x, one); });
}
BENCHMARK(relu_step);
BENCHMARK(relu_forward_only);
BENCHMARK(add_step);
BENCHMARK(max_pool_step);

// Allocation and release in the memory pool.
void empty_tensor(benchmark::State& state) {
  const auto context = make_cpu_context({.threads = 1});
  const Tensor held = context->empty({8});
  for (auto _ : state) benchmark::DoNotOptimize(context->empty({8}).raw());
}
BENCHMARK(empty_tensor);

}  // namespace
}  // namespace dtrain

BENCHMARK_MAIN();
