// What the transport of a group gives: versions, and how fast neighbours exchange messages.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain {

// "Open MPI v4.1.4": the library that is loaded, and the one that was built against; empty in a build without MPI.
struct MpiVersions {
  std::string loaded, built;
};
MpiVersions mpi_versions();

struct Link {
  int from = 0, to = 0;
  double latency = 0;    // seconds that a message of a few bytes takes one way
  double bandwidth = 0;  // bytes per second of long ones
};
// Between each rank and the next, with every second link at work at a time. Collective; nothing where there is no MPI.
std::vector<Link> measure_links(Group& group);

}  // namespace dtrain
