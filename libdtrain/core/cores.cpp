#include "libdtrain/core/cores.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <compare>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <sched.h>

#include "libdtrain/core/control_groups.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// CPU bandwidth control: time per period, both in microseconds; no limit unless the quota is positive.
struct Quota {
  double quota = 0, period = 0;
};

// Version 2, cpu.max: "200000 100000" or "max 100000".
Quota quota_2(const fs::path& group) {
  Quota limit;
  std::ifstream(group / "cpu.max") >> limit.quota >> limit.period;
  return limit;
}

// Version 1, one file each; -1: no limit.
Quota quota_1(const fs::path& group) {
  Quota limit;
  std::ifstream(group / "cpu.cfs_quota_us") >> limit.quota;
  std::ifstream(group / "cpu.cfs_period_us") >> limit.period;
  return limit;
}

// Least quota, in cores, along the path from the process's group to the mount. A container that cannot see the host's
// groups finds its own at the mount.
int least_quota(const ControlGroup& group, Quota (*quota_of)(const fs::path&)) {
  int least = 0;
  for (fs::path at = group.name;; at = at.parent_path()) {
    const Quota limit = quota_of(group.mount / at);
    if (limit.quota > 0 && limit.period > 0) {
      const auto cores = static_cast<int>(std::clamp(std::ceil(limit.quota / limit.period), 1.0, 1e6));
      least = least == 0 ? cores : std::min(least, cores);
    }
    if (at.empty()) return least;
  }
}

// Logical core: a hardware thread of a physical core.
struct CorePlace {
  int node = -1, package = 0, physical = 0, core = 0;
  auto operator<=>(const CorePlace&) const = default;
};

int number_in(const fs::path& path, int otherwise) {
  int number = otherwise;
  std::ifstream(path) >> number;
  return number;
}

CorePlace place_of(int core, const fs::path& root) {
  const fs::path folder = root / ("sys/devices/system/cpu/cpu" + std::to_string(core));
  CorePlace place{.package = number_in(folder / "topology/physical_package_id", 0),
                  .physical = number_in(folder / "topology/core_id", core),
                  .core = core};
  std::error_code ignored;  // a kernel without NUMA has no such folders
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.size() > 4 && std::isdigit(static_cast<unsigned char>(name[4])) != 0)
      place.node = std::stoi(name.substr(4));
  }
  return place;
}

// Cuts sorted `places` into `parts` pieces, between physical cores if there are enough.
std::vector<std::vector<int>> cut(const std::vector<CorePlace>& places, size_t parts) {
  std::vector<size_t> begins;  // first hardware threads of physical cores
  for (size_t i = 0; i < places.size(); ++i)
    if (i == 0 || places[i].physical != places[i - 1].physical || places[i].package != places[i - 1].package ||
        places[i].node != places[i - 1].node)
      begins.push_back(i);
  if (begins.size() < parts) {
    begins.clear();
    for (size_t i = 0; i < places.size(); ++i) begins.push_back(i);
  }
  begins.push_back(places.size());
  std::vector<std::vector<int>> pieces(parts);
  const size_t units = begins.size() - 1;
  for (size_t part = 0; part < parts; ++part)
    for (size_t i = begins[units * part / parts]; i < begins[units * (part + 1) / parts]; ++i)
      pieces[part].push_back(places[i].core);
  return pieces;
}

}  // namespace

std::vector<std::vector<int>> split_cores(const std::vector<int>& cores, const std::vector<int>& parts,
                                          const fs::path& root) {
  if (cores.size() < parts.size()) return {};
  std::vector<CorePlace> places;
  for (const int core : cores) places.push_back(place_of(core, root));
  std::ranges::sort(places);
  std::vector<std::vector<int>> result(parts.size());
  for (const int node : std::set<int>(parts.begin(), parts.end())) {
    std::vector<CorePlace> near;
    std::ranges::copy_if(places, std::back_inserter(near), [&](const CorePlace& place) { return place.node == node; });
    const auto wanted = static_cast<size_t>(std::ranges::count(parts, node));
    if (node < 0 || near.size() < wanted) return cut(places, parts.size());
    std::vector<std::vector<int>> pieces = cut(near, wanted);
    for (size_t part = 0, next = 0; part < parts.size(); ++part)
      if (parts[part] == node) result[part] = std::move(pieces[next++]);
  }
  return result;
}

std::vector<std::vector<int>> cores_by_socket(const std::vector<int>& cores, const fs::path& root) {
  std::map<int, std::map<int, int>> sockets;  // by package and physical core: its first hardware thread
  for (const int core : cores) {
    const CorePlace place = place_of(core, root);
    const auto [first, added] = sockets[place.package].emplace(place.physical, core);
    if (!added) first->second = std::min(first->second, core);
  }
  std::vector<std::vector<int>> result;
  for (const auto& [package, threads] : sockets) {
    std::vector<int>& socket = result.emplace_back();
    for (const auto& [physical, core] : threads) socket.push_back(core);
    std::ranges::sort(socket);
  }
  return result;
}

int numa_node_of_device(const std::string& address, const fs::path& root) {
  std::string name = address;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return number_in(root / "sys/bus/pci/devices" / (name + ".0") / "numa_node", -1);
}

int cpu_quota(const std::filesystem::path& root) {
  for (const ControlGroup& group : control_groups("cpu", root))
    if (const int quota = least_quota(group, group.version == 2 ? quota_2 : quota_1); quota > 0) return quota;
  return 0;
}

int usable_cores() {
  cpu_set_t bound;
  const int cores = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : 1;
  const int quota = cpu_quota();
  return quota > 0 ? std::min(cores, quota) : cores;
}

}  // namespace dtrain
