// Flags about the ranks of a job, and how they sum their gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "apps/cli/flags.h"
#include "libdtrain/run/elastic.h"

namespace dtrain::cli {

// Which of the processes that work together this is.
struct Ranks {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among those of its host
  int sharing = 1;                     // of those, with this one, that may run on its cores
  int chief = 0;                       // the one that writes checkpoints and metrics and talks to people
  bool is_chief() const { return rank == chief; }
};

// Which of the group's processes this is. The chief is the first one that is not in a launcher's pod, which may have no
// volumes. Collective.
Ranks ranks_of(Group& group);
// Flags of every program that may run as several ranks.
struct JobFlags {
  int64_t expect_ranks = 0;
  double collective_timeout = GroupOptions{}.step_limit;
  std::optional<double> start_timeout{};

  // Returns --collective_timeout.
  Flag& declare(FlagSet& flags);
  // That of a step, and no less for what may take longer.
  GroupOptions limits() const;
};

// How gradients are cut into pieces.
struct BucketFlags {
  double bucket_mb = 25, last_bucket_mb = 1;

  // Returns --bucket_mb, of which `least` is the smallest that is taken, and --last_bucket_mb.
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
  // How gradients are summed; "auto" on the wire is fp32.
  CommunicatorOptions communicator() const;
  // What of it the command line asks for, so that a checkpoint does not change it.
  ExplicitSettings asked_for(const FlagSet& flags) const;
};

// Throws Error(Fault::config) where --all_reduce_algorithm is none of those that sum on that device.
void check_algorithm(const std::string& algorithm, bool gpu);

}  // namespace dtrain::cli
