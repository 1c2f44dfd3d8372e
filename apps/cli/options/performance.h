// Flags of throughput reports.
#pragma once

#include <functional>
#include <optional>

#include "apps/cli/flags.h"
#include "apps/cli/machine.h"

namespace dtrain::cli {

struct PerformanceFlags {
  bool display_eta = false;
  std::optional<double> peak_tflops;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  // Peak FLOP/s of the device: as given; else by the name of a GPU, or measured on a CPU at the first call; 0: unknown.
  // `context` outlives the function.
  std::function<double()> peak(const Machine& machine, Context& context) const;
};

}  // namespace dtrain::cli
