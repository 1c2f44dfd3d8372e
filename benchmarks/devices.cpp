#include "benchmarks/devices.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

#include "apps/cli/environment.h"
#include "dtrain/train/metrics.h"

namespace dtrain {
namespace {

std::vector<std::unique_ptr<Context>> make_contexts(const std::string& device) {
  std::vector<std::unique_ptr<Context>> contexts;
  if (device != "gpu") contexts.push_back(make_cpu_context());
  if (device == "gpu" || (device == "all" && cuda_device_count() > 0))
    contexts.push_back(make_cuda_context(cli::with_environment()));
  return contexts;
}

}  // namespace

void run_benchmarks(const std::string& device, const std::function<void(Context&)>& register_all) {
  const auto contexts = make_contexts(device);
  for (const auto& context : contexts) register_all(*context);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::ClearRegisteredBenchmarks();  // they hold tensors of the contexts
}

std::vector<DType> types_of(const Context& context) {
  if (context.is_cpu()) return {DType::f32};
  return {DType::f32, DType::bf16, DType::f16};
}

void add_benchmark(const std::string& name, const std::function<void(benchmark::State&)>& measure) {
  benchmark::RegisterBenchmark(name.c_str(), measure)->Unit(benchmark::kMillisecond)->UseRealTime();
}

double median_seconds(Context& context, int64_t repeats, const std::function<void()>& work) {
  constexpr int kRuns = 5;
  work();
  std::vector<double> seconds;
  for (int64_t i = 0; i < std::max<int64_t>(repeats, 3); ++i) {
    const Event start = context.record();
    for (int k = 0; k < kRuns; ++k) work();
    const Event end = context.record();
    context.wait(end);
    seconds.push_back(context.seconds_between(start, end) / kRuns);
  }
  return median(std::move(seconds));
}

double measure_time(benchmark::State& state, Context& context, const std::function<void()>& work) {
  constexpr int kRuns = 10;
  work();
  context.synchronize("the first run");
  for (auto _ : state) {
    for (int i = 0; i < kRuns; ++i) work();
    context.synchronize("the runs");
  }
  const double runs = static_cast<double>(state.iterations()) * kRuns;
  state.counters["time"] = benchmark::Counter(runs, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  return runs;
}

void measure_bandwidth(benchmark::State& state, Context& context, size_t bytes, const std::function<void()>& work) {
  const double runs = measure_time(state, context, work);
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(bytes) * 1e-9 * runs, benchmark::Counter::kIsRate);
}

}  // namespace dtrain
