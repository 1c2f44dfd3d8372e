// What the kernel's log says about processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace dtrain {

// Microseconds of the clock of the kernel's log.
uint64_t kernel_time();
// True where the kernel has killed one of these processes for lack of memory at `since` or later, by its log; false
// where this process may not read that.
bool logs_oom_kill(const std::vector<int>& pids, uint64_t since, const std::filesystem::path& log = "/dev/kmsg");

}  // namespace dtrain
