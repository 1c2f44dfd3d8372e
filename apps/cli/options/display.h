// Flags about what a run prints and records as it goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct DisplayFlags {
  int64_t display_every = 10;
  std::optional<double> display_perf_ewma;
  std::string metrics_file;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  // Weight of the newest step in the displayed speed; none: all steps have the same.
  std::optional<double> moving_average() const;
};

}  // namespace dtrain::cli
