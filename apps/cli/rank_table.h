// What the ranks of a job run on, for people.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "apps/cli/machine.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::cli {

// Lines: how many ranks on how many hosts, then for each its host, device, NUMA nodes, cores and transport. Collective.
std::vector<std::string> rank_table(Group& group, const Machine& machine);

// The numbers of those that the process may run on, 0 for this one; empty where it has ended.
std::vector<int> cores_of(pid_t process);
// As Linux writes them: "0-3,8".
std::string list_of(const std::vector<int>& numbers);
// The NUMA nodes that hold `cores`, by /sys/devices/system/node; empty where the kernel names none.
std::vector<int> numa_nodes_of(const std::vector<int>& cores);

}  // namespace dtrain::cli
