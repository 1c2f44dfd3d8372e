// How many threads of this process can run at a time, and how many there may be.
#pragma once

#include <filesystem>

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

}  // namespace dtrain
