// Declaration of the flags, and rendezvous of processes without a launcher.
#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/options/distribution.h"

namespace dtrain::cli {

void DistributionFlags::declare(FlagSet& flags) {
  flags.group("Distribution in tf_cnn_benchmarks' terms");
  flags.add_choice("variable_update", variable_update,
                   {"parameter_server", "replicated", "distributed_replicated", "independent", "distributed_all_reduce",
                    "collective_all_reduce", "horovod"},
                   "all values except independent do the same: parameters are replicated, and gradients are averaged "
                   "by an all-reduce. With horovod, step lines report one rank, else all ranks");
  flags.add_choice("horovod_device", horovod_device, {"", "cpu", "gpu"},
                   "shown in the header; the all-reduce runs on the device that computes the gradients");
  flags.add("all_reduce_spec", all_reduce_spec,
            "e.g. nccl, xring or pscpu#2:32k:nccl/xring; mapped to an --all_reduce_algorithm with a notice. With nccl, "
            "a single GPU also runs NCCL's all-reduce, to measure its cost");
  flags.add("gradient_repacking", gradient_repacking, "number of gradient buckets; 0: by --bucket_mb", kCount);
  flags.add("compact_gradient_transfer", compact_gradient_transfer,
            "with --use_fp16 and replicated, distributed_all_reduce or collective_all_reduce: --wire_precision=auto is "
            "fp16");
  flags.add("hierarchical_copy", hierarchical_copy, "NCCL finds the links between GPUs by itself");
  flags.add_choice("job_name", job_name, {"", "ps", "worker", "controller"},
                   "ps and controller are idle: they wait for SIGTERM or Ctrl-C and exit with code 0");
  flags.add("worker_hosts", worker_hosts,
            "host:port of each worker, for workers started by hand that connect over TCP; ignored under mpirun");
  flags.add("task_index", task_index, "index of this worker in worker_hosts; ignored under mpirun", kCount)
      .may_differ_per_rank();
}

int DistributionFlags::check_workers() const {
  const auto workers = static_cast<int>(worker_hosts.size());
  DT_CHECK(job_name != "worker" || workers > 0, "--job_name=worker needs --worker_hosts");
  DT_CHECK(workers == 0 || task_index < workers, "--task_index=", task_index, ": --worker_hosts names ", workers,
           workers == 1 ? " worker" : " workers", ", counted from 0");
  return workers;
}

Workers DistributionFlags::workers() const {
  check_workers();
  return {.hosts = worker_hosts, .task = static_cast<int>(task_index)};
}

std::optional<std::string> DistributionFlags::reason_to_wait() const {
  if (job_name != "ps" && job_name != "controller") return std::nullopt;
  const LauncherRank told = launcher_rank(environment());
  DT_CHECK(told.size <= 1, "--job_name=", job_name, " for rank ", told.rank, " of ", told.size,
           ": all ranks train; start one rank per worker, without --job_name");
  return fmt::format(
      "--job_name={}: workers all-reduce gradients among themselves; this process is idle and waits for SIGTERM",
      job_name);
}

}  // namespace dtrain::cli
