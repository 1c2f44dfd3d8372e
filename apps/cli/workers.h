// Workers that are started by hand, each with the list of all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/local_ranks.h"

namespace dtrain::cli {

struct Workers {
  std::vector<std::string> hosts{};  // HOST:PORT that each listens on at job start
  int task = 0;                      // index of this worker

  bool are_several() const { return hosts.size() > 1; }
  // Rendezvous over TCP at the first worker. `local`: local rank within this worker. None for at most one worker, or if
  // a launcher started several ranks. Throws Error(Fault::config) for an invalid address.
  std::optional<TcpOptions> tcp(const LocalRank& local = {}) const;
  // The ranks to start for the `devices` of this worker. Throws like tcp(), and Error(Fault::config) if a launcher
  // started several ranks.
  LocalJob local_job(int devices) const;
};

}  // namespace dtrain::cli
