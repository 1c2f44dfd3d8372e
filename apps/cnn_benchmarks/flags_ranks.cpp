// Flags about training on several ranks.
#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {
namespace {

using cli::kNotNegative;
using cli::kPositive;

constexpr cli::Range kMebibytes{1e-6, 1 << 20};

// tf_cnn_benchmarks', all of which come to one mechanism.
void declare_distribution(cli::FlagSet& flags, Flags& v) {
  flags.group("Communication and distribution");
  flags.add_choice(
      "variable_update", v.variable_update,
      {"parameter_server", "replicated", "distributed_replicated", "independent", "distributed_all_reduce",
       "collective_all_reduce", "horovod"},
      "all but independent are one thing: each rank keeps the parameters, and gradients are averaged by an "
      "all-reduce. With horovod the lines of steps are about one rank, else about all");
  flags.add_choice("local_parameter_device", v.local_parameter_device, {"cpu", "gpu"},
                   "parameters live on the compute device");
  flags.add_choice("horovod_device", v.horovod_device, {"", "cpu", "gpu"},
                   "shown in the header; gradients are summed where they are computed");
  flags.add("all_reduce_spec", v.all_reduce_spec,
            "nccl, xring, pscpu#2:32k:nccl/xring and the like, taken as an --all_reduce_algorithm with a notice; with "
            "nccl in it the gradients of a single GPU pass NCCL as well, so that its cost can be measured");
  flags.add("gradient_repacking", v.gradient_repacking, "number of buckets; 0: by --bucket_mb", kNotNegative);
  flags.add("compact_gradient_transfer", v.compact_gradient_transfer,
            "with --use_fp16 and replicated, distributed_all_reduce or collective_all_reduce: --wire_precision=fp16");
  flags.add("agg_small_grads_max_bytes", v.agg_small_grads_max_bytes, "see --bucket_mb", kNotNegative);
  flags.add("agg_small_grads_max_group", v.agg_small_grads_max_group, "see --bucket_mb", kNotNegative);
  flags.add("allreduce_merge_scope", v.allreduce_merge_scope, "see --bucket_mb", kPositive);
  flags.add("hierarchical_copy", v.hierarchical_copy, "NCCL finds the links between GPUs by itself");
  flags.add_choice("network_topology", v.network_topology, {"dgx1", "gcp_v100"}, "of hierarchical_copy");
  flags.add_choice("variable_consistency", v.variable_consistency, {"strong", "relaxed"},
                   "relaxed, parameters of one step before, is refused");
  flags.add("staged_vars", v.staged_vars, "parameters of one step before: refused");
  flags.add("cross_replica_sync", v.cross_replica_sync, "false, asynchronous updates, is refused");
  flags.add_choice("job_name", v.job_name, {"", "ps", "worker", "controller"},
                   "ps and controller end at once with code 0: no such process is needed");
  flags.add("ps_hosts", v.ps_hosts, "no parameter server is spoken to");
  flags.add("worker_hosts", v.worker_hosts, "several workers are started by mpirun, whose hosts count");
  flags.add("controller_host", v.controller_host, "no controller is spoken to");
  flags.add("task_index", v.task_index, "number of this worker; that of mpirun counts", kNotNegative);
  flags.add("server_protocol", v.server_protocol, "MPI or NCCL chooses the transport");
}

}  // namespace

void declare_ranks(cli::FlagSet& flags, Flags& v) {
  declare_distribution(flags, v);
  flags.group("Several ranks");
  flags.add(
      "bucket_mb", v.bucket_mb,
      "gradients are summed in pieces of about so many MiB, each as soon as the backward pass has it; of Horovod's "
      "variables HOROVOD_FUSION_THRESHOLD sets it",
      kMebibytes);
  flags.add("last_bucket_mb", v.last_bucket_mb, "the piece that is ready last, which nothing is left to hide",
            kMebibytes);
  flags.add("autotune_buckets", v.autotune_buckets,
            "try sizes of buckets in the first steps and keep the one with which the slowest rank is fastest; sets the "
            "order of sums by timing, so that two runs may differ in their last bits. HOROVOD_AUTOTUNE sets it");
  flags.add_choice("wire_precision", v.wire_precision, {"auto", "fp32", "bf16", "fp16"},
                   "of gradients between ranks; 16 bits halve the bytes and round each sum. auto: fp32, but see "
                   "compact_gradient_transfer");
  flags.add_choice("all_reduce_algorithm", v.all_reduce_algorithm,
                   {"auto", "ring", "direct", "hierarchical", "doubling", "tree", "collnetdirect", "collnetchain",
                    "nvls", "nvlstree"},
                   "auto: on CPUs doubling for short messages, else hierarchical where hosts have equally many ranks, "
                   "several each, else direct on one host and ring on several; on GPUs NCCL's choice. tree and those "
                   "behind it are NCCL's");
  flags.add("expect_ranks", v.expect_ranks, "exit 1 where another number of ranks has been started; 0: any",
            kNotNegative);
  flags.add("collective_timeout", v.collective_timeout,
            "seconds that a rank waits for the others in a step before the job ends with exit code 4; "
            "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS sets it",
            kPositive);
  flags.add("verify_weights_every", v.verify_weights_every,
            "steps after which several ranks compare checksums of their parameters; 0: at checkpoints only",
            kNotNegative);
  flags.add("sync_batch_norm", v.sync_batch_norm,
            "batch norm's mean and variance over the batches of all ranks, not of each alone");
}

}  // namespace dtrain::cnn_benchmarks
