// Limits, buckets, wire and algorithm.
#include "apps/cli/options/ranks.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/machine.h"
#include "apps/cli/rank_table.h"
#include "apps/cli/values.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

constexpr double kMostMebibytes = 1 << 20;
constexpr double kLongestWait = 1e9;  // 30 years: clocks count nanoseconds in 64 bits

// Parses a boolean variable as Horovod does.
bool is_off(const std::string& text) { return text.empty() || text == "0"; }

}  // namespace

Flag& JobFlags::declare(FlagSet& flags) {
  flags.add("start_timeout", start_timeout,
            "timeout in seconds for all ranks to connect without MPI, 600 by default; exit code 4 on expiry",
            {0.001, kLongestWait});
  flags.add("expect_ranks", expect_ranks, "expected number of ranks; exit code 1 on any other number; 0: any", kCount);
  return flags.add("collective_timeout", collective_timeout,
                   "timeout in seconds of a collective; exit code 4 on expiry", {0.001, kLongestWait});
}

GroupOptions JobFlags::limits() const {
  GroupOptions limits;
  limits.step_limit = collective_timeout;
  limits.start_limit = start_timeout;
  for (double* limit : {&limits.setup_limit, &limits.evaluation_limit}) *limit = std::max(*limit, collective_timeout);
  return limits;
}

std::pair<Flag&, Flag&> BucketFlags::declare(FlagSet& flags, double least) {
  constexpr char kMeaning[] =
      "size of gradient buckets in MiB of fp32; each bucket is all-reduced as soon as the backward pass has filled it";
  Flag& size = flags.add("bucket_mb", bucket_mb, concat(kMeaning, least > 0 ? "" : "; 0: each parameter separately"),
                         {least, kMostMebibytes});
  Flag& last =
      flags.add("last_bucket_mb", last_bucket_mb,
                "size in MiB of the last bucket, whose all-reduce no computation overlaps", {1e-6, kMostMebibytes});
  return {size, last};
}

BucketOptions BucketFlags::options() const {
  return {.bytes = static_cast<int64_t>(bucket_mb * kMebibyte),
          .last_bytes = static_cast<int64_t>(last_bucket_mb * kMebibyte)};
}

void RankFlags::declare(FlagSet& flags) {
  flags.group("Several ranks");
  job.declare(flags).set_by("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
                            [](const std::string& text) -> std::optional<std::string> {
                              if (parse_number<double>(text, kNotNegative) > 0) return text;
                              return std::nullopt;
                            });
  buckets.declare(flags).first.set_by("HOROVOD_FUSION_THRESHOLD",
                                      [](const std::string& text) -> std::optional<std::string> {
                                        if (is_off(text))
                                          return "0.000001";  // without fusion, each parameter is a message
                                        return fmt::format("{}", parse_number<double>(text, kNotNegative) / kMebibyte);
                                      });
  flags
      .add("autotune_buckets", autotune_buckets,
           "tune the bucket size in the first steps, by the step time of the slowest rank. Summation order then "
           "depends on timing, so that two runs may differ in the last bits")
      .set_by("HOROVOD_AUTOTUNE", [](const std::string& text) -> std::optional<std::string> {
        if (is_off(text)) return std::nullopt;
        return "true";
      });
  flags.add_choice("wire_precision", wire_precision, {"auto", "fp32", "bf16", "fp16"},
                   "data type of gradients in the all-reduce; 16 bits halve the traffic and round each sum. auto: "
                   "fp32, unless another flag asks for 16 bits");
  flags.add_choice("all_reduce_algorithm", all_reduce_algorithm,
                   {"auto", "ring", "direct", "hierarchical", "doubling", "tree", "collnetdirect", "collnetchain",
                    "nvls", "nvlstree"},
                   "auto on CPUs: recursive doubling for short messages; else hierarchical if every host has the same "
                   "number of ranks, at least two; else direct on one host and ring on several. auto on GPUs: NCCL's "
                   "choice. tree and the algorithms after it are NCCL's");
  flags.add("verify_weights_every", verify_weights_every,
            "steps between comparisons of the ranks' parameter checksums; 0: only at checkpoints", kCount);
  flags
      .add("sync_batch_norm", sync_batch_norm,
           "synchronised batch norm: mean and variance over the batches of all ranks")
      .identity("batch norm", [this] { return sync_batch_norm ? "over all ranks" : "per rank"; });
}

namespace {

// Number of ranks on this host, including this one, whose core affinities overlap with this rank's.
int count_sharing(Group& group) {
  const std::vector<int> mine = cores_of(0);
  const std::vector<Place>& places = group.places();
  const int node = places[static_cast<size_t>(group.rank())].node;
  int sharing = 0, rank = 0;
  for (const std::string& text : group.all_gather(fmt::format(" {} ", fmt::join(mine, " ")), "cores")) {
    const auto is_theirs = [&](int core) { return text.find(fmt::format(" {} ", core)) != std::string::npos; };
    if (places[static_cast<size_t>(rank++)].node == node && std::ranges::any_of(mine, is_theirs)) ++sharing;
  }
  return std::max(1, sharing);
}

}  // namespace

Ranks ranks_of(Group& group) {
  const Place& place = group.places()[static_cast<size_t>(group.rank())];
  const char* role = environment()("K_MPI_JOB_ROLE");
  const bool in_launcher = role != nullptr && std::string_view(role) == "launcher";
  const int64_t chief = group.extremes(in_launcher ? group.size() : group.rank(), "the chief").first;
  if (chief < 0) throw Error(Fault::communication, fmt::format("the chief: a rank says that it is rank {}", chief));
  return {.rank = group.rank(),
          .size = group.size(),
          .local_rank = place.local_rank,
          .local_size = place.local_size,
          .sharing = count_sharing(group),
          .chief = chief < group.size() ? static_cast<int>(chief) : 0};
}

CommunicatorOptions RankFlags::communicator() const {
  return {.wire = precision_of(wire_precision), .algorithm = all_reduce_algorithm};
}

ExplicitSettings RankFlags::asked_for(const FlagSet& flags) const {
  return {.wire = flags.given("wire_precision"),
          .algorithm = flags.given("all_reduce_algorithm"),
          .bucket_bytes = flags.given("bucket_mb"),
          .last_bucket_bytes = flags.given("last_bucket_mb")};
}

void check_algorithm(const std::string& algorithm, bool gpu) {
  const bool ours = algorithm == "direct" || algorithm == "hierarchical" || algorithm == "doubling";
  DT_CHECK(!gpu || !ours, "--all_reduce_algorithm=", algorithm,
           ": for CPUs only; NCCL has auto, ring, tree, collnetdirect, collnetchain, nvls and nvlstree");
  DT_CHECK(gpu || ours || algorithm == "auto" || algorithm == "ring", "--all_reduce_algorithm=", algorithm,
           ": for NCCL only; CPUs have auto, ring, direct, hierarchical and doubling");
}

}  // namespace dtrain::cli
