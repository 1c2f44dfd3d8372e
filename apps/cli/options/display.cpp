// Lines of steps and of metrics.
#include "apps/cli/options/display.h"

namespace dtrain::cli {

void DisplayFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags.add("display_every", display_every, "steps between printed lines", kPositiveCount);
  flags.add("display_perf_ewma", display_perf_ewma,
            "weight of the newest step in the displayed speed; by default all steps weigh the same", kShare);
  flags
      .add("metrics_file", metrics_file,
           "JSON lines, one per displayed step, or comma-separated values in a file whose name ends in .csv; `step` "
           "counts warm-up steps")
      .may_differ_per_rank();
  flags
      .add("metrics_port", metrics_port,
           "serve live metrics to Prometheus at this port while training; 0: at a free one, which is printed",
           {0, 65535})
      .may_differ_per_rank();
  flags.add("metrics_address", metrics_address, "where to: this host alone by default, or 0.0.0.0 for everybody")
      .may_differ_per_rank();
  flags.add("progress", progress, "keep a few lines about the training at the end of the terminal, if there is one")
      .may_differ_per_rank();
}

void DisplayFlags::check(const FlagSet& flags) const {
  refuse({{flags.given("metrics_address") && !metrics_port, "--metrics_address needs --metrics_port"}});
}

std::optional<double> DisplayFlags::moving_average() const {
  return display_perf_ewma && *display_perf_ewma > 0 ? display_perf_ewma : std::nullopt;
}

}  // namespace dtrain::cli
