// Which devices and types a benchmark of ops covers, and how it reports them.
#pragma once

#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/environment.h"
#include "libdtrain/core/context.h"
#include "libdtrain/train/metrics.h"

namespace dtrain {

inline void add_device_flag(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "cpu, gpu or all that there are")->check(CLI::IsMember({"cpu", "gpu", "all"}));
}

// Contexts for the devices that the flag names; "gpu" throws where there is none.
inline std::vector<std::unique_ptr<Context>> make_contexts(const std::string& device) {
  std::vector<std::unique_ptr<Context>> contexts;
  if (device != "gpu") contexts.push_back(make_cpu_context());
  if (device == "gpu" || (device == "all" && cuda_device_count() > 0))
    contexts.push_back(make_cuda_context(cli::with_environment()));
  return contexts;
}

inline std::vector<DType> types_of(const Context& context) {
  if (context.is_cpu()) return {DType::f32};
  return {DType::f32, DType::bf16, DType::f16};
}

// Seconds that `work` takes: the median of `repeats` times, three at least, of several runs each. The first run, which
// chooses plans, does not count.
template <class Work>
double median_seconds(Context& context, int repeats, const Work& work) {
  constexpr int kRuns = 5;
  work();
  std::vector<double> seconds;
  for (int i = 0; i < std::max(repeats, 3); ++i) {
    const Moment start = context.record();
    for (int k = 0; k < kRuns; ++k) work();
    const Moment end = context.record();
    context.wait(end);
    seconds.push_back(context.seconds_between(start, end) / kRuns);
  }
  return median(std::move(seconds));
}

// Times `work`: the time of a run. The device is waited for once in several runs, whose number is returned.
template <class Work>
double measure_time(benchmark::State& state, Context& context, const Work& work) {
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

// The same, and GB/s, for work that moves `bytes` bytes.
template <class Work>
void measure_bandwidth(benchmark::State& state, Context& context, size_t bytes, const Work& work) {
  const double runs = measure_time(state, context, work);
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(bytes) * 1e-9 * runs, benchmark::Counter::kIsRate);
}

}  // namespace dtrain
