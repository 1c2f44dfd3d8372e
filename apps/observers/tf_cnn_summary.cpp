// Summary at the end of a run.
#include <sys/resource.h>

#include <algorithm>

#include <fmt/format.h>

#include "apps/observers/tf_cnn_log.h"
#include "dtrain/core/gpu_info.h"

namespace dtrain::observers {
namespace {

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Peak memory of this process.
double peak_resident_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

void TfCnnLog::summary() {
  const double tensors = mebibytes(context_.memory_stats().peak_in_use);  // excluding measurements
  const double waited = statistics_.timed_wait(), elapsed = statistics_.elapsed();
  const double steps = std::max<double>(1, static_cast<double>(statistics_.speed().steps()));
  log_.extra(fmt::format("Data wait:   {:.1f} ms per step, {:.1f} % of the time", 1e3 * waited / steps,
                         elapsed > 0 ? 100 * waited / elapsed : 0));
  if (options_.trains && statistics_.speed().steps() > 0) summary_of_step();
  if (statistics_.sums().steps > 0) summary_of_sums();
  log_.extra(fmt::format("Peak memory: {:.0f} MiB, {:.0f} MiB {}", peak_resident_mebibytes(), tensors,
                         options_.machine.gpu ? "on the GPU" : "of it tensors"));
}

void TfCnnLog::summary_of_step() {
  const StepTimes& times = statistics_.times();
  const double steps = static_cast<double>(statistics_.speed().steps()), seconds = times.step / steps;
  const auto milliseconds = [&](double sum) { return 1e3 * sum / steps; };
  log_.extra(
      fmt::format("Step parts:  forward {:.2f} ms, backward {:.2f} ms, {}update {:.2f} ms", milliseconds(times.forward),
                  milliseconds(times.backward),
                  options_.sums ? fmt::format("wait for all-reduce {:.2f} ms, ", milliseconds(times.reduce)) : "",
                  milliseconds(times.update)));
  const cli::Machine& machine = options_.machine;
  if (!machine.gpu) return summary_of_cpu(seconds);
  log_.extra(fmt::format("GPU time:    {:.2f} ms per step, {:.2f} ms between steps, for input",
                         milliseconds(times.step), milliseconds(times.before)));
  const GpuInfo gpu = gpu_info(machine.index);
  const auto share = [&](double rate, double peak) {
    return peak > 0 ? fmt::format(", {:.1f} % of the peak of {}", 100 * rate / peak, gpu.name) : "";
  };
  const double flops = options_.flops / seconds, bandwidth = statistics_.bytes() / seconds;
  log_.extra(fmt::format("Model FLOPs: {:.2f} TFLOP/s{}", flops / 1e12,
                         share(flops, peak_flops(gpu.name, machine.precision, machine.tf32))));
  log_.extra(fmt::format("Bandwidth:   {:.2f} TB/s at least{}", bandwidth / 1e12, share(bandwidth, gpu.bandwidth)));
}

// CPUs have no nominal FLOP/s, so the utilisation is relative to measured multiply-add throughput.
void TfCnnLog::summary_of_cpu(double seconds) {
  if (!options_.peak || options_.flops == 0) return;
  const double flops = options_.flops / seconds, peak = options_.peak();
  log_.extra(fmt::format("Model FLOPs: {:.2f} GFLOP/s, {:.1f} % of the {} peak of {:.2f} GFLOP/s", flops / 1e9,
                         100 * flops / peak, options_.stated_peak ? "stated" : "measured", peak / 1e9));
}

void TfCnnLog::summary_of_sums() {
  const StepStatistics::Sums& sums = statistics_.sums();
  const auto steps = static_cast<double>(sums.steps);
  const CommunicatorTimes& times = sums.times;
  log_.extra(
      fmt::format("All-reduce:  {:.2f} ms and {:.2f} MB per step, {:.2f} ms of it exposed ({:.1f} % of the step): {}{}",
                  1e3 * times.busy / steps, times.bytes / steps / 1e6, 1e3 * times.exposed / steps,
                  sums.step_seconds > 0 ? 100 * times.exposed / sums.step_seconds : 0, communicator_.describe(),
                  options_.cuda_graph ? ", in eager steps" : ""));
}

}  // namespace dtrain::observers
