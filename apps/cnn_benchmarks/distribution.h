// How gradients travel between ranks: what tf_cnn_benchmarks' flags about it and our own come to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cnn_benchmarks/flags.h"
#include "libdtrain/distributed/bucketer.h"

namespace dtrain::cnn_benchmarks {

struct Distribution {
  CommunicatorOptions gradients{};
  BucketOptions buckets{};
  int64_t packs = 0;      // instead of `buckets`: so many of equal size
  bool autotune = false;  // `buckets` is where it starts
  bool independent = false;
};

// Appends to `notices` what is done in another way than it was asked for. Throws Error(Fault::config) for what cannot
// be given, with the reason.
Distribution distribution_of(const Flags& flags, const cli::FlagSet& set, int ranks, bool gpu,
                             std::vector<std::string>& notices);

// Why a process of this --job_name ends at once, its work done: parameter servers and controllers are not needed. None
// for a process that trains. Throws Error(Fault::config) where a launcher counts on it as one of several ranks.
std::optional<std::string> reason_to_leave(const Flags& flags);

// How the workers of --worker_hosts that no launcher has started find each other: the first of them listens on its
// port. None where one process runs alone, or on a CPU, whose sums go over MPI. Throws Error(Fault::config) where
// --task_index or the address of the first worker makes no sense.
std::optional<TcpOptions> tcp_of_workers(const Flags& flags);

}  // namespace dtrain::cnn_benchmarks
