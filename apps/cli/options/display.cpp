// Flags of log lines and metrics.
#include "apps/cli/options/display.h"

namespace dtrain::cli {

void DisplayFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags.add("display_every", display_every, "steps between log lines", kPositiveCount);
  flags.add("display_perf_ewma", display_perf_ewma,
            "smoothing factor of the displayed throughput (exponentially weighted moving average): weight of the "
            "newest step; default: the mean over all steps",
            kShare);
  flags
      .add("metrics_file", metrics_file,
           "file of metrics, one line per displayed step: CSV if its name ends in .csv, else JSON lines; `step` "
           "includes warm-up steps")
      .may_differ_per_rank();
  flags
      .add("metrics_port", metrics_port,
           "port of a Prometheus endpoint with live metrics; 0: a free port, which is printed", {0, 65535})
      .may_differ_per_rank();
  flags
      .add(
          "metrics_address", metrics_address,
          "address that metrics_port listens on; the default is reachable from this host only, 0.0.0.0 from everywhere")
      .may_differ_per_rank();
  flags.add("progress", progress, "show a live progress display at the bottom of the terminal").may_differ_per_rank();
}

void DisplayFlags::check(const FlagSet& flags) const {
  refuse({{flags.given("metrics_address") && !metrics_port, "--metrics_address needs --metrics_port"}});
}

std::optional<double> DisplayFlags::moving_average() const {
  return display_perf_ewma && *display_perf_ewma > 0 ? display_perf_ewma : std::nullopt;
}

}  // namespace dtrain::cli
