// CPU cores: affinity, cgroup quotas, NUMA nodes, and their partition among ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// Limit of compute threads per context and of worker threads per loader: more than any machine's cores, far below what
// libgomp can start.
inline constexpr int kMaxThreads = 1024;

// Cores of this process's CPU affinity (taskset, mpirun, container), limited by cpu_quota().
int usable_cores();

// CPU quota of this process's control groups (v1 and v2), in cores, rounded up; 0: no limit. `root`: parent of proc and
// sys.
int cpu_quota(const std::filesystem::path& root = "/");

// Partitions `cores` among parts: balanced, by whole physical cores, neighbours (NUMA node, socket) together. parts[i]:
// NUMA node that part i prefers, -1 for none. If all parts name a node, each gets cores of that node. Empty if there
// are fewer cores than parts.
std::vector<std::vector<int>> split_cores(const std::vector<int>& cores, const std::vector<int>& parts,
                                          const std::filesystem::path& root = "/");
// One hardware thread per physical core of `cores`, grouped by socket.
std::vector<std::vector<int>> cores_by_socket(const std::vector<int>& cores, const std::filesystem::path& root = "/");
// NUMA node of a PCI device, by GpuInfo::address; -1 if unknown.
int numa_node_of_device(const std::string& address, const std::filesystem::path& root = "/");

}  // namespace dtrain
