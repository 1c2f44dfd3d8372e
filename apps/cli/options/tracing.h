// Flags of traces, profiles, and the model summary.
#pragma once

#include <string>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct TracingFlags {
  std::string trace_file, tfprof_file, profile, timeline;
  bool use_chrome_trace_format = true;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  bool wanted() const { return !trace_file.empty() || !tfprof_file.empty() || !profile.empty() || !timeline.empty(); }
};

// For programs whose model is in the catalogue.
struct GraphFlags {
  std::string graph_file;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
};

}  // namespace dtrain::cli
