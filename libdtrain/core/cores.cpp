#include "libdtrain/core/cores.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <sched.h>

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// Processor time that a group may use in each period, both in microseconds; no limit where the quota is not positive.
struct Quota {
  double quota = 0, period = 0;
};

// Version 2: "200000 100000" or "max 100000".
Quota quota_2(const fs::path& group) {
  Quota limit;
  std::ifstream(group / "cpu.max") >> limit.quota >> limit.period;
  return limit;
}

// Version 1: a file for each, -1 for no limit.
Quota quota_1(const fs::path& group) {
  Quota limit;
  std::ifstream(group / "cpu.cfs_quota_us") >> limit.quota;
  std::ifstream(group / "cpu.cfs_period_us") >> limit.period;
  return limit;
}

// The least quota, in cores, of the groups from the process's own up to the mount. A container that does not see the
// groups of its host has its own where they are mounted.
int least_quota(const fs::path& mount, const fs::path& group, Quota (*quota_of)(const fs::path&)) {
  int least = 0;
  for (fs::path at = group.relative_path();; at = at.parent_path()) {
    const Quota limit = quota_of(mount / at);
    if (limit.quota > 0 && limit.period > 0) {
      const auto cores = static_cast<int>(std::clamp(std::ceil(limit.quota / limit.period), 1.0, 1e6));
      least = least == 0 ? cores : std::min(least, cores);
    }
    if (at.empty()) return least;
  }
}

bool names_cpu(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');)
    if (name == "cpu") return true;
  return false;
}

}  // namespace

int cpu_quota(const std::filesystem::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  // "4:cpu,cpuacct:/group" in version 1, "0::/group" in version 2.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    int quota = 0;
    if (controllers.empty()) quota = least_quota(root / "sys/fs/cgroup", group, quota_2);
    if (names_cpu(controllers)) quota = least_quota(root / "sys/fs/cgroup/cpu", group, quota_1);
    if (quota > 0) return quota;
  }
  return 0;
}

int usable_cores() {
  cpu_set_t bound;
  const int cores = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : 1;
  const int quota = cpu_quota();
  return quota > 0 ? std::min(cores, quota) : cores;
}

}  // namespace dtrain
