// Table of the ranks of a job: hosts, devices, cores and transports.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "apps/cli/machine.h"
#include "dtrain/distributed/group.h"

namespace dtrain::cli {

// Lines: number of ranks and hosts, then host, device, NUMA nodes, cores and transport of each rank. Collective.
std::vector<std::string> rank_table(Group& group, const Machine& machine);

// Core affinity of a process (0: this one); empty if it has ended.
std::vector<int> cores_of(pid_t process);
// Linux' list format: "0-3,8".
std::string list_of(const std::vector<int>& numbers);
// NUMA nodes of `cores`, from /sys/devices/system/node; empty if the kernel reports none.
std::vector<int> numa_nodes_of(const std::vector<int>& cores);

}  // namespace dtrain::cli
