// Declaration, and how processes find each other that no launcher has started.
#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/options/distribution.h"

namespace dtrain::cli {

void DistributionFlags::declare(FlagSet& flags) {
  flags.group("Distribution in tf_cnn_benchmarks' terms");
  flags.add_choice(
      "variable_update", variable_update,
      {"parameter_server", "replicated", "distributed_replicated", "independent", "distributed_all_reduce",
       "collective_all_reduce", "horovod"},
      "all but independent are one thing: each rank keeps the parameters, and gradients are averaged by an "
      "all-reduce. With horovod the lines of steps are about one rank, else about all");
  flags.add_choice("horovod_device", horovod_device, {"", "cpu", "gpu"},
                   "shown in the header; gradients are summed where they are computed");
  flags.add("all_reduce_spec", all_reduce_spec,
            "nccl, xring, pscpu#2:32k:nccl/xring and the like, taken as an --all_reduce_algorithm with a notice; with "
            "nccl in it, the gradients of a single GPU pass NCCL as well, so that its cost can be measured");
  flags.add("gradient_repacking", gradient_repacking, "number of buckets; 0: by --bucket_mb", kCount);
  flags.add("compact_gradient_transfer", compact_gradient_transfer,
            "with --use_fp16 and replicated, distributed_all_reduce or collective_all_reduce: --wire_precision=auto is "
            "fp16");
  flags.add("hierarchical_copy", hierarchical_copy, "NCCL finds the links between GPUs by itself");
  flags.add_choice("job_name", job_name, {"", "ps", "worker", "controller"},
                   "ps and controller have nothing to do: they wait until they are told to end (SIGTERM, Ctrl-C), "
                   "which is exit code 0");
  flags.add("worker_hosts", worker_hosts,
            "host:port of each worker: started by hand, they meet over TCP; under mpirun, mpirun's hosts are used");
  flags.add("task_index", task_index, "number of this worker in worker_hosts; under mpirun, mpirun's is used", kCount)
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
           ": all ranks train; start as many as there are workers, without --job_name");
  return fmt::format(
      "--job_name={}: workers sum gradients among themselves; this process has nothing to do and waits until it "
      "is told to end",
      job_name);
}

}  // namespace dtrain::cli
