// What this machine is made of: sockets, NUMA nodes, cores, and the devices near them.
#pragma once

#include <string>
#include <vector>

namespace dtrain::info {

// Lines: the sum of it, then for each NUMA node its cores, memory, GPUs and network cards; by hwloc. One line that says
// why where the topology cannot be read.
std::vector<std::string> topology_lines();

}  // namespace dtrain::info
