#include "libdtrain/core/control_groups.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

namespace dtrain {
namespace {

namespace fs = std::filesystem;

bool is_among(const std::string& controller, const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');)
    if (name == controller) return true;
  return false;
}

// Value of a line "name value".
std::optional<uint64_t> value_of(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  uint64_t value = 0;
  for (std::string key; file >> key >> value;)
    if (key == name) return value;
  return std::nullopt;
}

// In bytes; none for "max" or, in version 1, a number beyond all memory.
uint64_t limit_in(const fs::path& path) {
  constexpr uint64_t kNone = uint64_t{1} << 60;
  uint64_t limit = 0;
  return std::ifstream(path) >> limit && limit < kNone ? limit : 0;
}

}  // namespace

std::vector<ControlGroup> control_groups(const std::string& controller, const fs::path& root) {
  std::vector<ControlGroup> found;
  std::ifstream groups(root / "proc/self/cgroup");
  // "4:cpu,cpuacct:/group" in version 1, "0::/group" in version 2.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path name = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) found.push_back({2, root / "sys/fs/cgroup", name});
    if (is_among(controller, controllers)) found.push_back({1, root / "sys/fs/cgroup" / controller, name});
  }
  return found;
}

MemoryGroup memory_group(const fs::path& root) {
  for (const ControlGroup& group : control_groups("memory", root)) {
    const char* const events = group.version == 2 ? "memory.events" : "memory.oom_control";
    const char* const limit = group.version == 2 ? "memory.max" : "memory.limit_in_bytes";
    std::optional<uint64_t> kills;
    MemoryGroup memory{.name = group.name.string()};
    for (fs::path at = group.name;; at = at.parent_path()) {
      if (!kills) kills = value_of(group.mount / at / events, "oom_kill");
      if (const uint64_t bytes = limit_in(group.mount / at / limit))
        memory.limit = memory.limit == 0 ? bytes : std::min(memory.limit, bytes);
      if (at.empty()) break;
    }
    if (!kills && memory.limit == 0) continue;
    memory.oom_kills = kills.value_or(0);
    return memory;
  }
  return {};
}

}  // namespace dtrain
