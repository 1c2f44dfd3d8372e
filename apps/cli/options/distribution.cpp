// All variable_update modes of tf_cnn_benchmarks map to one mechanism: replicated parameters, and gradients averaged by
// a bucketed all-reduce. Notices name the differences.
#include "apps/cli/options/distribution.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/options/all_reduce_spec.h"

namespace dtrain::cli {
namespace {

using Notices = std::vector<std::string>;

// Both ring-based algorithms transfer the same bytes; the fixed table of `auto` selects by message size and hosts.
std::string algorithm_for(const std::vector<AllReduceRange>& spec) {
  return spec.size() == 1 && spec[0].algorithm == "xring" ? "ring" : "auto";
}

void choose_algorithm(const DistributionFlags& f, const FlagSet& flags, bool gpu, CommunicatorOptions& gradients,
                      Notices& notices) {
  const std::vector<AllReduceRange> spec = parse_all_reduce_spec(f.all_reduce_spec);
  gradients.even_alone =
      gpu && std::ranges::any_of(spec, [](const AllReduceRange& r) { return r.algorithm.starts_with("nccl"); });
  if (!spec.empty() && !flags.given("all_reduce_algorithm")) {
    gradients.algorithm = algorithm_for(spec);
    notices.push_back(
        fmt::format("--all_reduce_spec={}: uses {} (--all_reduce_algorithm={}); there is no central process or device "
                    "that reduces for the others",
                    f.all_reduce_spec, gpu ? "NCCL" : "an all-reduce of our own", gradients.algorithm));
  }
  check_algorithm(gradients.algorithm, gpu);
}

// tf_cnn_benchmarks with --use_fp16 reduces fp16 gradients in its own all-reduce modes.
void choose_wire(const DistributionFlags& f, const RankFlags& own, int ranks, DType precision,
                 CommunicatorOptions& gradients, Notices& notices) {
  const bool sums_itself = f.variable_update == "replicated" || f.variable_update == "distributed_all_reduce" ||
                           f.variable_update == "collective_all_reduce";
  if (own.wire_precision != "auto" || precision != DType::f16 || !f.compact_gradient_transfer || !sums_itself) return;
  gradients.wire = DType::f16;
  if (ranks > 1)
    notices.push_back(
        "gradients are all-reduced in fp16 (--compact_gradient_transfer); --wire_precision=fp32 keeps fp32");
}

int64_t choose_packs(const DistributionFlags& f, const FlagSet& flags, const RankFlags& own, Notices& notices) {
  const int64_t packs = f.gradient_repacking;
  if (packs == 0) return 0;
  DT_CHECK(!flags.given("bucket_mb") && !flags.given("last_bucket_mb"),
           "--gradient_repacking and --bucket_mb or --last_bucket_mb: at most one may be given");
  DT_CHECK(!own.autotune_buckets, "--gradient_repacking and --autotune_buckets: at most one may be given");
  notices.push_back(
      fmt::format("--gradient_repacking={}: that number of buckets of about equal size; no parameter is split", packs));
  return packs;
}

void check_jobs(const DistributionFlags& f, int ranks, Notices& notices) {
  const int workers = f.check_workers();
  if (workers > 0 && ranks > 1)
    notices.push_back(launcher_rank(environment()).size > 1
                          ? fmt::format("--worker_hosts, --task_index: ignored; the launcher started {} ranks", ranks)
                          : fmt::format("--worker_hosts: {} ranks, connected over TCP", ranks));
}

void report_variables(const DistributionFlags& f, int ranks, Notices& notices) {
  if (ranks == 1 || f.variable_update == "horovod") return;
  if (f.variable_update == "independent") {
    notices.push_back("--variable_update=independent: each rank trains its own model; only metrics are aggregated");
    return;
  }
  const bool servers = f.variable_update == "parameter_server" || f.variable_update == "distributed_replicated";
  notices.push_back(fmt::format(
      "--variable_update={}: {}same as horovod: parameters are replicated, and gradients are averaged by an all-reduce",
      f.variable_update, servers ? "synchronous, without parameter servers: " : ""));
}

void report_replacements(const DistributionFlags& f, int ranks, bool gpu, Notices& notices) {
  const auto report = [&](bool asked, const char* text) {
    if (asked) notices.push_back(text);
  };
  DT_CHECK(!f.hierarchical_copy || ranks > 1, "--hierarchical_copy needs more than one GPU, with one rank per GPU");
  report(f.hierarchical_copy, "--hierarchical_copy: NCCL finds the links between GPUs by itself");
  report(f.horovod_device == "cpu" && gpu,
         "--horovod_device=cpu: gradients on GPUs are all-reduced on the GPUs, by NCCL");
  report(f.horovod_device == "gpu" && !gpu, "--horovod_device=gpu: gradients on CPUs are all-reduced on the CPUs");
}

}  // namespace

Distribution DistributionFlags::resolve(const FlagSet& flags, const RankFlags& own, int ranks, const Machine& machine,
                                        Notices& notices) const {
  Distribution result{.gradients = own.communicator(),
                      .buckets = own.buckets.options(),
                      .autotune = own.autotune_buckets,
                      .independent = variable_update == "independent"};
  check_jobs(*this, ranks, notices);
  report_variables(*this, ranks, notices);
  choose_algorithm(*this, flags, machine.gpu, result.gradients, notices);
  choose_wire(*this, own, ranks, machine.precision, result.gradients, notices);
  result.packs = choose_packs(*this, flags, own, notices);
  report_replacements(*this, ranks, machine.gpu, notices);
  return result;
}

}  // namespace dtrain::cli
