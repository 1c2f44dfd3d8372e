// tf_cnn_benchmarks' flags of gradient exchange, and the resulting all-reduce configuration.
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
  int64_t packs = 0;      // instead of `buckets`: this number of equal size
  bool autotune = false;  // `buckets` is the initial value
  bool independent = false;
};

struct DistributionFlags {
  std::string variable_update = "parameter_server", horovod_device, all_reduce_spec, job_name;
  int64_t gradient_repacking = 0, task_index = 0;
  bool compact_gradient_transfer = true, hierarchical_copy = false;
  std::vector<std::string> worker_hosts;

  void declare(FlagSet& flags);
  void check(const FlagSet&) const {}

  // Appends a notice for each setting that is replaced. Throws Error(Fault::config), with the reason, for settings that
  // are not supported.
  Distribution resolve(const FlagSet& flags, const RankFlags& own, int ranks, const Machine& machine,
                       std::vector<std::string>& notices) const;

  // The notice of an idle process (--job_name=ps or controller); none for a process that trains. Throws
  // Error(Fault::config) if a launcher started the process as one of several ranks.
  std::optional<std::string> reason_to_wait() const;

  // The workers of --worker_hosts. Throws as check_workers().
  Workers workers() const;

  // Number of workers. Throws Error(Fault::config) if this process cannot be one of them.
  int check_workers() const;
};

}  // namespace dtrain::cli
