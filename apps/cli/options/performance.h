// Flags about what a run reports about its speed.
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
  // Operations per second that the device can do at most: as stated or, once somebody asks, measured on a CPU, and by
  // the name of a GPU; 0: not known. `context` outlives the function.
  std::function<double()> peak(const Machine& machine, Context& context) const;
};

}  // namespace dtrain::cli
