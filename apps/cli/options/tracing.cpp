#include "apps/cli/options/tracing.h"

#include <optional>

namespace dtrain::cli {

void TracingFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags
      .add("trace_file", trace_file,
           "file of a trace of one step, the second-to-last of the warm-up, of rank 0: ops, sums over ranks and the "
           "threads that load data, for chrome://tracing and Perfetto")
      .may_differ_per_rank();
  flags
      .add("use_chrome_trace_format", use_chrome_trace_format,
           "form of trace_file; false: a table of text, an op a line")
      .may_differ_per_rank();
  flags
      .add("tfprof_file", tfprof_file,
           "file of a profile of the first ten steps after the warm-up, of rank 0; the 20 ops that take the most time "
           "are printed")
      .may_differ_per_rank();
  flags
      .add("profile", profile,
           "SVG file of the ops of those ten steps under the roofs of the machine, whose peaks are measured at the "
           "start; a table of them is printed")
      .may_differ_per_rank();
  flags
      .add("timeline", timeline,
           "file of a timeline of the whole run, of rank 0: steps and each sum over the ranks, in the form of "
           "trace_file; it can be read while the run goes on, and after it was killed")
      .may_differ_per_rank()
      .set_by("HOROVOD_TIMELINE", [](const std::string& text) -> std::optional<std::string> {
        // Horovod's word for one that the program itself begins later.
        return text.empty() || text == "DYNAMIC" ? std::nullopt : std::optional(text);
      });
}

void GraphFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags
      .add("graph_file", graph_file,
           "file of a listing of the model: each op with its shapes, parameters and multiply-adds")
      .may_differ_per_rank();
}

}  // namespace dtrain::cli
