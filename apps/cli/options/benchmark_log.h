// Flags of log formats for other tools: the model garden's benchmark log and MLPerf's compliance log.
#pragma once

#include <string>

#include "apps/cli/flags.h"

namespace dtrain::cli {

struct BenchmarkLogFlags {
  std::string benchmark_log_dir, benchmark_test_id;
  bool ml_perf_compliance_logging = false;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
};

}  // namespace dtrain::cli
