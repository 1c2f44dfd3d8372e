// Properties of a group's transport: versions, latency and bandwidth between neighbours.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain {

// "Open MPI v4.1.4": as loaded and as built against; empty in builds without MPI.
struct MpiVersions {
  std::string loaded, built;
};
MpiVersions mpi_versions();

struct Link {
  int from = 0, to = 0;
  double latency = 0;    // one-way latency of a short message, seconds
  double bandwidth = 0;  // of long messages, bytes per second
};
// Links between each rank and the next, measured with every second link active at a time. Collective; empty without
// MPI.
std::vector<Link> measure_links(Group& group);

}  // namespace dtrain
