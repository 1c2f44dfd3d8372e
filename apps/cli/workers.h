// The workers of a job that are started by hand, each told of all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/local_ranks.h"

namespace dtrain::cli {

struct Workers {
  std::vector<std::string> hosts{};  // HOST:PORT of each, which it listens on while the job starts
  int task = 0;                      // which of them this is

  bool are_several() const { return hosts.size() > 1; }
  // How they find each other: they meet at the first. `local`: which one of its worker's ranks this is. None where
  // there is one worker at most, or where a launcher has started this process as one of several ranks. Throws
  // Error(Fault::config) where an address makes no sense.
  std::optional<TcpOptions> tcp(const LocalRank& local = {}) const;
  // The ranks to start for the `devices` of this worker. Throws Error(Fault::config) as tcp(), and where a launcher has
  // started this process as one of several ranks.
  LocalJob local_job(int devices) const;
};

}  // namespace dtrain::cli
