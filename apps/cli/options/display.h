// Flags of log lines, metrics files and live metrics.
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
  std::optional<int64_t> metrics_port;  // 0: any free port
  std::string metrics_address = "127.0.0.1";
  bool progress = false;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  // EWMA weight of the newest step in the displayed throughput; none: the mean.
  std::optional<double> moving_average() const;
};

}  // namespace dtrain::cli
