// Which devices and types a benchmark of ops covers, and how it times them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "libdtrain/core/context.h"

namespace benchmark {
class State;
}

namespace dtrain {

void add_device_flag(cli::FlagSet& flags, std::string& device);

// Calls `register_all` for each device that the flag names, and runs the benchmarks that it has registered. "gpu"
// throws where there is none.
void run_benchmarks(const std::string& device, const std::function<void(Context&)>& register_all);

std::vector<DType> types_of(const Context& context);

// Registers a benchmark whose results are in milliseconds of wall time.
void add_benchmark(const std::string& name, const std::function<void(benchmark::State&)>& measure);

// Seconds that `work` takes: the median of `repeats` times, three at least, of several runs each. The first run, which
// chooses plans, does not count.
double median_seconds(Context& context, int64_t repeats, const std::function<void()>& work);

// Times `work`: the time of a run. The device is waited for once in several runs, whose number is returned.
double measure_time(benchmark::State& state, Context& context, const std::function<void()>& work);

// The same, and GB/s, for work that moves `bytes` bytes.
void measure_bandwidth(benchmark::State& state, Context& context, size_t bytes, const std::function<void()>& work);

}  // namespace dtrain
