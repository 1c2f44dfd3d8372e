#include "apps/cli/options/tracing.h"

#include <optional>

namespace dtrain::cli {

void TracingFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags
      .add("trace_file", trace_file,
           "trace of one step of rank 0, the second to last of the warm-up, for chrome://tracing and Perfetto: ops, "
           "all-reduces and loader threads")
      .may_differ_per_rank();
  flags
      .add("use_chrome_trace_format", use_chrome_trace_format,
           "write trace_file in the Chrome trace format; false: a text table with one line per op")
      .may_differ_per_rank();
  flags
      .add("tfprof_file", tfprof_file,
           "profile of the first ten steps after the warm-up of rank 0; the 20 slowest ops are printed")
      .may_differ_per_rank();
  flags
      .add("profile", profile,
           "SVG file of a roofline plot: the ops of the first ten steps after the warm-up, against peaks measured at "
           "the start; a table is printed too")
      .may_differ_per_rank();
  flags
      .add("timeline", timeline,
           "Chrome trace of the whole run of rank 0, with steps and all-reduces; readable during the run, and after "
           "the run was killed")
      .may_differ_per_rank()
      .set_by("HOROVOD_TIMELINE", [](const std::string& text) -> std::optional<std::string> {
        // Horovod's value for a timeline that the program starts later.
        return text.empty() || text == "DYNAMIC" ? std::nullopt : std::optional(text);
      });
}

void GraphFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags
      .add("graph_file", graph_file,
           "file for a summary of the model: each op with its shapes, parameters and multiply-adds")
      .may_differ_per_rank();
}

}  // namespace dtrain::cli
