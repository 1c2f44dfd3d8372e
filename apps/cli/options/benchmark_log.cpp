#include "apps/cli/options/benchmark_log.h"

namespace dtrain::cli {

void BenchmarkLogFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags.add("benchmark_log_dir", benchmark_log_dir,
            "folder of the model garden's benchmark log: benchmark_run.log about the run, metric.log with its figures");
  flags.add("benchmark_test_id", benchmark_test_id, "name of the run in that log");
  flags.add("ml_perf_compliance_logging", ml_perf_compliance_logging,
            "print lines of MLPerf's compliance log 0.5.0, for --model=resnet50_v1.5; those about its layers are left "
            "out");
}

void BenchmarkLogFlags::check(const FlagSet& flags) const {
  refuse({{ml_perf_compliance_logging && flags.text("model") != "resnet50_v1.5",
           "--ml_perf_compliance_logging needs --model=resnet50_v1.5"}});
}

}  // namespace dtrain::cli
