// Local ranks that a program starts itself, as processes of the same command.
#pragma once

#include <string>
#include <vector>

#include "dtrain/distributed/group.h"

namespace dtrain::cli {

// Position of a process among those of run_local_ranks(); count 0: not one of them.
struct LocalRank {
  int rank = 0, count = 0;
};
LocalRank local_rank();

// The ranks to start, and their place in the job.
struct LocalJob {
  int count = 1;
  int first = 0, size = 1;                // ranks of the whole job; if all are local, they connect on this machine
  std::vector<std::vector<int>> cores{};  // cores of each rank, if bound
};

// Starts this program once per rank and waits for all of them. Ranks share standard input and output. Of several
// `error: ...` lines, only the one of the first rank that failed by itself is printed; its exit code is returned.
// Forwards stop requests. If one rank fails, the others end; if this process is killed, they are killed. Throws
// Error(Fault::resource) if a process cannot be started. Call before starting threads.
int run_local_ranks(const LocalJob& job, const std::vector<std::string>& argv);

// Takes over the rendezvous socket that run_local_ranks() opened.
void take_listener(TcpOptions& tcp);

}  // namespace dtrain::cli
