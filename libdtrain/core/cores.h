// How many threads of this process can run at a time, and how many there may be.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// The most compute threads of a context, or worker threads of a loader: more than any machine's cores, and far below
// what ends libgomp.
inline constexpr int kMaxThreads = 1024;

// The cores that this process is bound to, as by taskset, mpirun or a container, but no more than cpu_quota() leaves
// it.
int usable_cores();

// The share of the processor that the control groups of this process leave it, of either version, as a container's
// limit sets it: in cores, rounded up; 0 where there is no limit. `root`: where proc and sys are.
int cpu_quota(const std::filesystem::path& root = "/");

// Deals `cores` out to parts[i], as equal as whole physical cores allow, neighbours together: in the order of NUMA
// nodes and sockets. parts[i]: the NUMA node that part i works near, -1 for none. Where all have one, each gets cores
// of its own node. Nothing where there are fewer cores than parts.
std::vector<std::vector<int>> split_cores(const std::vector<int>& cores, const std::vector<int>& parts,
                                          const std::filesystem::path& root = "/");
// One core for each physical core that `cores` are threads of, by socket.
std::vector<std::vector<int>> cores_by_socket(const std::vector<int>& cores, const std::filesystem::path& root = "/");
// The NUMA node of a device by its PCI address, as GpuInfo has it; -1 where it is not known.
int numa_node_of_device(const std::string& address, const std::filesystem::path& root = "/");

}  // namespace dtrain
