// tf_cnn_benchmarks' flags about how gradients travel between ranks, and what they and our own come to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/machine.h"
#include "apps/cli/options/ranks.h"
#include "apps/cli/workers.h"

namespace dtrain::cli {

struct Distribution {
  CommunicatorOptions gradients{};
  BucketOptions buckets{};
  int64_t packs = 0;      // instead of `buckets`: so many of equal size
  bool autotune = false;  // `buckets` is where it starts
  bool independent = false;
};

struct DistributionFlags {
  std::string variable_update = "parameter_server", horovod_device, all_reduce_spec, job_name;
  int64_t gradient_repacking = 0, task_index = 0;
  bool compact_gradient_transfer = true, hierarchical_copy = false;
  std::vector<std::string> worker_hosts;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}

  // Appends to `notices` what is done in another way than it was asked for. Throws Error(Fault::config) for what cannot
  // be given, with the reason.
  Distribution resolve(const FlagSet& flags, const RankFlags& own, int ranks, const Machine& machine,
                       std::vector<std::string>& notices) const;

  // Why a process of this --job_name has nothing to do: parameter servers and controllers are not needed. None for a
  // process that trains. Throws Error(Fault::config) where a launcher counts on it as one of several ranks.
  std::optional<std::string> reason_to_wait() const;

  // The workers of --worker_hosts. Throws as check_workers().
  Workers workers() const;

  // How many workers there are. Throws Error(Fault::config) where this process cannot be one of them.
  int check_workers() const;
};

}  // namespace dtrain::cli
