// Ranks of this host that a program starts by itself, as processes of the same command.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain::cli {

// What a process is among those that run_local_ranks() started; count 0: it is none of them.
struct LocalRank {
  int rank = 0, count = 0;
};
LocalRank local_rank();

// The ranks to start, and which of a job they are.
struct LocalJob {
  int count = 1;
  int first = 0, size = 1;                // in the job; where it has no others, they meet on this machine
  std::vector<std::vector<int>> cores{};  // those of each, if it is to be bound
};

// Starts this program once more as each rank of the job, and waits for all of them. They share standard input and
// output; of what they write on stderr one `error: ...` is printed, that of the rank whose exit code is returned: the
// first that failed for a reason of its own. Requests to stop are passed on. Where one fails, the others end, and where
// this process is killed, they are. Throws Error(Fault::resource) where a process cannot be started. To be called
// before there are threads.
int run_local_ranks(const LocalJob& job, const std::vector<std::string>& argv);

// Takes over what run_local_ranks() has opened for the ranks of this process to meet.
void take_listener(TcpOptions& tcp);

}  // namespace dtrain::cli
