// Kernel log (/dev/kmsg): processes killed for lack of memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace dtrain {

// Microseconds on the kernel log's clock.
uint64_t kernel_time();
// Whether the kernel log records an OOM kill of one of `pids` at `since` or later; false if the log is not readable.
bool logs_oom_kill(const std::vector<int>& pids, uint64_t since, const std::filesystem::path& log = "/dev/kmsg");

}  // namespace dtrain
