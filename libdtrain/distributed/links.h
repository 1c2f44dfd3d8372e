// Properties of a group's transport: version, latency and bandwidth between neighbours.
#pragma once

#include <string>
#include <vector>

#include "dtrain/distributed/group.h"

namespace dtrain {

// "Open MPI v4.1.4": the library that ranks of mpirun use on this machine, or "none: " and the reason.
std::string mpi_version();

struct Link {
  int from = 0, to = 0;
  double latency = 0;    // one-way latency of a short message, seconds
  double bandwidth = 0;  // of long messages, bytes per second
};
// Links between each rank and the next, measured with every second link active at a time. Collective; empty without
// MPI.
std::vector<Link> measure_links(Group& group);

}  // namespace dtrain
