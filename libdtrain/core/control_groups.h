// Control groups of this process, of either version: what a container or a batch system allows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// The group of one hierarchy: its folder is mount / name, or one of those above it where the host's are not visible.
struct ControlGroup {
  int version = 2;
  std::filesystem::path mount, name;  // name: relative to the mount
};
// Those that `controller` ("cpu", "memory") may belong to. `root`: where proc and sys are.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::filesystem::path& root = "/");

// Memory of the group that this process is in; all zero where there is none.
struct MemoryGroup {
  std::string name{};
  uint64_t oom_kills = 0;  // processes that the kernel has killed in it for lack of memory
  uint64_t limit = 0;      // bytes, the least of the groups from its own up; 0: none
};
MemoryGroup memory_group(const std::filesystem::path& root = "/");

}  // namespace dtrain
