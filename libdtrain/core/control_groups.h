// Control groups (cgroups v1 and v2) of this process: CPU and memory limits of containers and batch systems.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// Group within a hierarchy: folder mount / name, or the nearest visible ancestor.
struct ControlGroup {
  int version = 2;
  std::filesystem::path mount, name;  // name: relative to the mount
};
// Groups with `controller` ("cpu", "memory"). `root`: parent of proc and sys.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::filesystem::path& root = "/");

// Memory limits and events of this process's group; all zero if there is none.
struct MemoryGroup {
  std::string name{};
  uint64_t oom_kills = 0;  // processes killed by the kernel's OOM killer
  uint64_t limit = 0;      // bytes, the least along the path to the root; 0: none
};
MemoryGroup memory_group(const std::filesystem::path& root = "/");

}  // namespace dtrain
