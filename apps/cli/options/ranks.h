// Flags of the ranks of a job and of their all-reduce.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "apps/cli/flags.h"
#include "dtrain/run/elastic.h"

namespace dtrain::cli {

// Position of this process in the job.
struct Ranks {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // local rank
  int sharing = 1;                     // ranks that share the cores of this rank, including it
  int chief = 0;                       // the rank that writes checkpoints, metrics and messages
  bool is_chief() const { return rank == chief; }
};

// Position of this process in the group. The chief is the first rank outside of a launcher's pod, which may have no
// volumes. Collective.
Ranks ranks_of(Group& group);
// Flags of all distributed programs.
struct JobFlags {
  int64_t expect_ranks = 0;
  double collective_timeout = GroupOptions{}.step_limit;
  std::optional<double> start_timeout{};

  // Returns --collective_timeout.
  Flag& declare(FlagSet& flags);
  // Timeout of a step, and lower limit for longer operations.
  GroupOptions limits() const;
};

// Gradient bucket sizes.
struct BucketFlags {
  double bucket_mb = 25, last_bucket_mb = 1;

  // Declares --bucket_mb, with minimum `least`, and --last_bucket_mb.
  std::pair<Flag&, Flag&> declare(FlagSet& flags, double least = 1e-6);
  BucketOptions options() const;
};
inline constexpr double kMebibyte = 1 << 20;

struct RankFlags {
  JobFlags job;
  BucketFlags buckets;
  bool autotune_buckets = false, sync_batch_norm = false;
  std::string wire_precision = "auto", all_reduce_algorithm = "auto";
  int64_t verify_weights_every = 500;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}
  // Options of the all-reduce; "auto" on the wire is fp32.
  CommunicatorOptions communicator() const;
  // Settings given on the command line, which a checkpoint does not override.
  ExplicitSettings asked_for(const FlagSet& flags) const;
};

// Throws Error(Fault::config) if --all_reduce_algorithm does not exist for that device.
void check_algorithm(const std::string& algorithm, bool gpu);

}  // namespace dtrain::cli
