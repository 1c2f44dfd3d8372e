// Devices and data types of op benchmarks, and their timing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dtrain/core/context.h"

namespace benchmark {
class State;
}

namespace dtrain {

// Calls `register_all` for each device of `device` ("cpu", "gpu" or "all"), then runs the registered benchmarks. Throws
// Error for "gpu" where there is no GPU; "all" skips it.
void run_benchmarks(const std::string& device, const std::function<void(Context&)>& register_all);

// Data types to benchmark on this device.
std::vector<DType> types_of(const Context& context);

// Registers a benchmark that reports wall time in milliseconds.
void add_benchmark(const std::string& name, const std::function<void(benchmark::State&)>& measure);

// Median time of one run of `work` in seconds, over `repeats` (at least 3) measurements of several runs each. One
// warm-up run, which also chooses plans, is not counted.
double median_seconds(Context& context, int64_t repeats, const std::function<void()>& work);

// Reports the mean time of one run of `work` in the counter `time`. Synchronises the device once per 10 runs. Returns
// the number of timed runs.
double measure_time(benchmark::State& state, Context& context, const std::function<void()>& work);

// The same, and reports the bandwidth in GB/s of work that moves `bytes` bytes.
void measure_bandwidth(benchmark::State& state, Context& context, size_t bytes, const std::function<void()>& work);

}  // namespace dtrain
