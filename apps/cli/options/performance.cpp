#include "apps/cli/options/performance.h"

#include <memory>

#include "libdtrain/core/gpu_info.h"
#include "libdtrain/ops/peaks.h"

namespace dtrain::cli {

void PerformanceFlags::declare(FlagSet& flags) {
  flags.group("Speed");
  flags.add("display_eta", display_eta, "printed lines end with the time that is left, by the speed so far");
  flags.add("peak_tflops", peak_tflops,
            "10^12 operations per second that the device can do, for the share of it that training reaches; by default "
            "a GPU's is known by its name, and a CPU's is measured at the end, or at the start for --metrics_file and "
            "--metrics_port, in loops of multiply-adds",
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
