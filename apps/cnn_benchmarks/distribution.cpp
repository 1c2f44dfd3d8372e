// One mechanism serves all forms of tf_cnn_benchmarks: each rank keeps the parameters, and gradients are averaged by an
// all-reduce in buckets. Notices say where that differs from what was asked for.
#include "apps/cnn_benchmarks/distribution.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/machine.h"
#include "apps/cnn_benchmarks/all_reduce_spec.h"

namespace dtrain::cnn_benchmarks {
namespace {

constexpr double kMebibyte = 1 << 20;

// Both of ours that go round pass the same bytes; the fixed table of `auto` takes what suits size and hosts.
std::string algorithm_for(const std::vector<AllReduceRange>& spec) {
  return spec.size() == 1 && spec[0].algorithm == "xring" ? "ring" : "auto";
}

void choose_algorithm(const Flags& f, const cli::FlagSet& set, bool gpu, Distribution& result,
                      std::vector<std::string>& notices) {
  const std::vector<AllReduceRange> spec = parse_all_reduce_spec(f.all_reduce_spec);
  std::string& algorithm = result.gradients.algorithm;
  algorithm = f.all_reduce_algorithm;
  result.gradients.even_alone =
      gpu && std::ranges::any_of(spec, [](const AllReduceRange& r) { return r.algorithm.starts_with("nccl"); });
  if (!spec.empty() && !set.given("all_reduce_algorithm")) {
    algorithm = algorithm_for(spec);
    notices.push_back(
        fmt::format("--all_reduce_spec={}: done by {} (--all_reduce_algorithm={}); no process and no "
                    "device sums for the others",
                    f.all_reduce_spec, gpu ? "NCCL" : "an all-reduce of our own over MPI", algorithm));
  }
  const bool ours = algorithm == "direct" || algorithm == "hierarchical" || algorithm == "doubling";
  DT_CHECK(!gpu || !ours, "--all_reduce_algorithm=", algorithm,
           ": of CPUs; NCCL has auto, ring, tree, collnetdirect, collnetchain, nvls and nvlstree");
  DT_CHECK(gpu || ours || algorithm == "auto" || algorithm == "ring", "--all_reduce_algorithm=", algorithm,
           ": of NCCL; CPUs have auto, ring, direct, hierarchical and doubling");
}

// Rounded gradients are what tf_cnn_benchmarks makes of --use_fp16 where it sums by itself.
void choose_wire(const Flags& f, int ranks, Distribution& result, std::vector<std::string>& notices) {
  const bool sums_itself = f.variable_update == "replicated" || f.variable_update == "distributed_all_reduce" ||
                           f.variable_update == "collective_all_reduce";
  const bool compact =
      f.wire_precision == "auto" && f.precision == "fp16" && f.compact_gradient_transfer && sums_itself;
  result.gradients.wire = cli::precision_of(compact ? "fp16" : f.wire_precision);
  if (compact && ranks > 1)
    notices.push_back(
        "gradients are sent as fp16 (--compact_gradient_transfer); --wire_precision=fp32 sends them as they are");
}

void choose_buckets(const Flags& f, const cli::FlagSet& set, Distribution& result, std::vector<std::string>& notices) {
  const auto bytes = [](double mebibytes) { return std::max<int64_t>(1, static_cast<int64_t>(mebibytes * kMebibyte)); };
  result.buckets = {.bytes = bytes(f.bucket_mb), .last_bytes = bytes(f.last_bucket_mb)};
  result.autotune = f.autotune_buckets;
  DT_CHECK(f.gradient_repacking == 0 || (!set.given("bucket_mb") && !set.given("last_bucket_mb")),
           "--gradient_repacking and --bucket_mb or --last_bucket_mb: at most one may be given");
  DT_CHECK(f.gradient_repacking == 0 || !f.autotune_buckets,
           "--gradient_repacking and --autotune_buckets: at most one may be given");
  result.packs = f.gradient_repacking;
  if (result.packs > 0)
    notices.push_back(fmt::format("--gradient_repacking={}: as many buckets of about equal size, parameters kept whole",
                                  result.packs));
}

// Parameters older than the last update are what these ask for.
void refuse_stale_updates(const Flags& f) {
  constexpr char kReason[] =
      ": each step of this engine waits for the gradients of all ranks, so that N ranks train as one does; updates "
      "that are asynchronous or one step old are not made; leave the flag out";
  DT_CHECK(f.cross_replica_sync, "--cross_replica_sync=false", kReason);
  DT_CHECK(f.variable_consistency == "strong", "--variable_consistency=relaxed", kReason);
  DT_CHECK(!f.staged_vars, "--staged_vars", kReason);
}

std::vector<std::string> names_of_hosts(const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const std::string& host : hosts) names.push_back(host.substr(0, host.rfind(':')));
  return names;
}

int check_workers(const Flags& f) {
  const auto workers = static_cast<int>(f.worker_hosts.size());
  DT_CHECK(f.job_name != "worker" || workers > 0, "--job_name=worker needs --worker_hosts");
  DT_CHECK(workers == 0 || f.task_index < workers, "--task_index=", f.task_index, ": --worker_hosts names ", workers,
           workers == 1 ? " worker" : " workers", ", counted from 0");
  return workers;
}

void check_jobs(const Flags& f, int ranks, std::vector<std::string>& notices) {
  const int workers = check_workers(f);
  DT_CHECK(workers <= 1 || ranks > 1, "--worker_hosts names ", workers,
           " workers, and no launcher has started this process as one of them; start all of them by one command: ",
           fmt::format("mpirun -np {} --host {} dtrain-cnn-benchmarks ...", workers,
                       fmt::join(names_of_hosts(f.worker_hosts), ",")));
  if (workers > 0 && ranks > 1)
    notices.push_back(launcher_rank(cli::environment()).size > 1
                          ? fmt::format("--worker_hosts, --task_index: the launcher's {} ranks count", ranks)
                          : fmt::format("--worker_hosts: {} ranks, which meet over TCP", ranks));
  if (!f.ps_hosts.empty() || !f.controller_host.empty())
    notices.push_back("--ps_hosts, --controller_host: no parameter server and no controller is needed or spoken to");
}

void tell_of_variables(const Flags& f, int ranks, std::vector<std::string>& notices) {
  if (ranks == 1 || f.variable_update == "horovod") return;
  if (f.variable_update == "independent") {
    notices.push_back("--variable_update=independent: ranks train models of their own; only figures are summed");
    return;
  }
  const bool servers = f.variable_update == "parameter_server" || f.variable_update == "distributed_replicated";
  notices.push_back(
      fmt::format("--variable_update={}: {}done as horovod is, by an all-reduce among ranks that all "
                  "keep the parameters; gradients are averaged",
                  f.variable_update, servers ? "synchronous, without parameter servers: " : ""));
}

void tell_of_replacements(const Flags& f, const cli::FlagSet& set, int ranks, bool gpu,
                          std::vector<std::string>& notices) {
  const auto tell = [&](bool asked, const char* text) {
    if (asked) notices.push_back(text);
  };
  DT_CHECK(!f.hierarchical_copy || ranks > 1, "--hierarchical_copy needs more than one GPU, a rank for each");
  tell(f.hierarchical_copy || set.given("network_topology"),
       "--hierarchical_copy, --network_topology: NCCL finds the links between GPUs by itself");
  tell(f.agg_small_grads_max_bytes > 0 || set.given("agg_small_grads_max_group"),
       "--agg_small_grads_*: small gradients share the buckets of --bucket_mb");
  tell(f.allreduce_merge_scope > 1, "--allreduce_merge_scope: gradients are merged into the buckets of --bucket_mb");
  tell(f.server_protocol != "grpc", "--server_protocol: MPI or NCCL chooses the transport");
  tell(f.horovod_device == "cpu" && gpu, "--horovod_device=cpu: gradients of GPUs are summed on the GPUs, by NCCL");
  tell(f.horovod_device == "gpu" && !gpu, "--horovod_device=gpu: gradients of CPUs are summed on the CPUs, over MPI");
}

}  // namespace

Distribution distribution_of(const Flags& flags, const cli::FlagSet& set, int ranks, bool gpu,
                             std::vector<std::string>& notices) {
  Distribution result;
  refuse_stale_updates(flags);
  check_jobs(flags, ranks, notices);
  tell_of_variables(flags, ranks, notices);
  choose_algorithm(flags, set, gpu, result, notices);
  choose_wire(flags, ranks, result, notices);
  choose_buckets(flags, set, result, notices);
  tell_of_replacements(flags, set, ranks, gpu, notices);
  result.independent = flags.variable_update == "independent";
  return result;
}

std::optional<TcpOptions> tcp_of_workers(const Flags& flags) {
  const int workers = check_workers(flags);
  if (workers <= 1 || flags.device == "cpu" || cuda_device_count() == 0 || launcher_rank(cli::environment()).size > 1)
    return std::nullopt;
  const std::string& first = flags.worker_hosts[0];
  const size_t colon = first.rfind(':');
  int port = 0;
  const char* end = first.data() + first.size();
  if (colon == std::string::npos || std::from_chars(first.data() + colon + 1, end, port).ptr != end) port = 0;
  DT_CHECK(port > 0 && port < 65536, "--worker_hosts: '", first,
           "': expected HOST:PORT with a port that is free there");
  return TcpOptions{.rank = static_cast<int>(flags.task_index),
                    .size = workers,
                    .address = first.substr(0, colon),
                    .port = port,
                    .bind_address = "",
                    .job = fmt::format("{}", fmt::join(flags.worker_hosts, ","))};
}

std::optional<std::string> reason_to_leave(const Flags& flags) {
  if (flags.job_name != "ps" && flags.job_name != "controller") return std::nullopt;
  const LauncherRank told = launcher_rank(cli::environment());
  DT_CHECK(told.size <= 1, "--job_name=", flags.job_name, " for rank ", told.rank, " of ", told.size,
           ": all ranks train; start as many as there are workers, without --job_name");
  return fmt::format("--job_name={}: workers sum gradients among themselves; this process is not needed and ends",
                     flags.job_name);
}

}  // namespace dtrain::cnn_benchmarks
