#include "apps/cli/options/benchmark_log.h"

namespace dtrain::cli {

void BenchmarkLogFlags::declare(FlagSet& flags) {
  flags.group("Display");
  flags.add("benchmark_log_dir", benchmark_log_dir,
            "folder for logs in the format of TensorFlow's model garden: benchmark_run.log describes the run, "
            "metric.log holds its metrics");
  flags.add("benchmark_test_id", benchmark_test_id, "test_id of the run in benchmark_run.log");
  flags.add("ml_perf_compliance_logging", ml_perf_compliance_logging,
            "print the MLPerf 0.5.0 compliance log, without the lines about layers; for --model=resnet50_v1.5");
}

void BenchmarkLogFlags::check(const FlagSet& flags) const {
  refuse({{ml_perf_compliance_logging && flags.text("model") != "resnet50_v1.5",
           "--ml_perf_compliance_logging needs --model=resnet50_v1.5"}});
}

}  // namespace dtrain::cli
