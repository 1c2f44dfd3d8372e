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
}

std::optional<double> DisplayFlags::moving_average() const {
  return display_perf_ewma && *display_perf_ewma > 0 ? display_perf_ewma : std::nullopt;
}

}  // namespace dtrain::cli
