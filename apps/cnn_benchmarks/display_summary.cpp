// What a run says at its end.
#include <sys/resource.h>

#include <algorithm>

#include <fmt/format.h>

#include "apps/cnn_benchmarks/display.h"
#include "libdtrain/core/gpu_info.h"

namespace dtrain::cnn_benchmarks {
namespace {

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// The most memory this process has held at a time.
double peak_resident_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

void Display::summary(double elapsed) const {
  const double waited = wait_ - timed_wait_;
  const double steps = std::max<double>(1, static_cast<double>(speed_.steps()));
  log_.line(fmt::format("Data wait:   {:.1f} ms per step, {:.1f} % of the time", 1e3 * waited / steps,
                        elapsed > 0 ? 100 * waited / elapsed : 0));
  if (session_.config.trains() && speed_.steps() > 0) summary_of_step();
  if (sums_.steps > 0) summary_of_sums();
  const double tensors = mebibytes(session_.context->memory_stats().peak_in_use);
  log_.line(fmt::format("Peak memory: {:.0f} MiB, {:.0f} MiB {}", peak_resident_mebibytes(), tensors,
                        session_.config.machine.gpu ? "on the GPU" : "of it tensors"));
}

void Display::summary_of_step() const {
  const cli::Machine& machine = session_.config.machine;
  const double steps = static_cast<double>(speed_.steps()), seconds = times_.step / steps;
  const auto milliseconds = [&](double sum) { return 1e3 * sum / steps; };
  const bool sums = session_.config.sums();
  log_.line(fmt::format("Step parts:  forward {:.2f} ms, backward {:.2f} ms, {}update {:.2f} ms",
                        milliseconds(times_.forward), milliseconds(times_.backward),
                        sums ? fmt::format("wait for sums {:.2f} ms, ", milliseconds(times_.reduce)) : "",
                        milliseconds(times_.update)));
  if (!machine.gpu) return;
  log_.line(fmt::format("GPU time:    {:.2f} ms per step, {:.2f} ms between steps, for input",
                        milliseconds(times_.step), milliseconds(times_.before)));
  const GpuInfo gpu = gpu_info(machine.index);
  const auto share = [&](double rate, double peak) {
    return peak > 0 ? fmt::format(", {:.1f} % of the peak of {}", 100 * rate / peak, gpu.name) : "";
  };
  // Forward, and twice as much backward; a multiply-add is two.
  const int64_t images = session_.config.batch * session_.config.flags.gradient_accumulation;
  const double flops =
      3 * 2 * static_cast<double>(session_.model.multiply_adds) * static_cast<double>(images) / seconds;
  log_.line(fmt::format("Model FLOPs: {:.2f} TFLOP/s{}", flops / 1e12,
                        share(flops, peak_flops(gpu.name, machine.precision, machine.tf32))));
  log_.line(fmt::format("Bandwidth:   {:.2f} TB/s at least{}", bytes_ / seconds / 1e12,
                        share(bytes_ / seconds, gpu.bandwidth)));
}

void Display::summary_of_sums() const {
  const auto steps = static_cast<double>(sums_.steps);
  const CommunicatorTimes& times = sums_.times;
  log_.line(fmt::format(
      "All-reduce:  {:.2f} ms and {:.2f} MB per step, {:.2f} ms of it exposed ({:.1f} % of the step): {}{}",
      1e3 * times.busy / steps, times.bytes / steps / 1e6, 1e3 * times.exposed / steps,
      sums_.step_seconds > 0 ? 100 * times.exposed / sums_.step_seconds : 0, session_.communicator->describe(),
      session_.config.machine.gpu && session_.config.flags.cuda_graph ? ", in steps that were not replayed" : ""));
}

}  // namespace dtrain::cnn_benchmarks
