#include "apps/cli/options/performance.h"

#include <memory>

#include "dtrain/core/gpu_info.h"
#include "dtrain/ops/peaks.h"

namespace dtrain::cli {

void PerformanceFlags::declare(FlagSet& flags) {
  flags.group("Speed");
  flags.add("display_eta", display_eta, "append the estimated remaining time to log lines");
  flags.add(
      "peak_tflops", peak_tflops,
      "peak of the device in TFLOP/s, for the reported utilisation (MFU). Default: a GPU's by its name; a CPU's is "
      "measured with loops of multiply-adds, at the end, or at the start with --metrics_file and --metrics_port",
      {1e-6, 1e6});
}

std::function<double()> PerformanceFlags::peak(const Machine& machine, Context& context) const {
  if (peak_tflops) return [peak = *peak_tflops * 1e12] { return peak; };
  if (machine.gpu)
    return [machine] { return peak_flops(gpu_info(machine.index).name, machine.precision, machine.tf32); };
  return [&context, precision = machine.precision, measured = std::make_shared<double>(0)] {
    if (*measured == 0) *measured = measure_peak_flops(context, precision);
    return *measured;
  };
}

}  // namespace dtrain::cli
