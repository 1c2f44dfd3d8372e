#include "apps/observers/machine_report.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/cli/machine.h"
#include "dtrain/core/gpu_info.h"

namespace dtrain::observers {
namespace {

// First values of "key : value" lines of a /proc file.
std::map<std::string, std::string> entries_of(const char* path) {
  std::map<std::string, std::string> entries;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    entries.emplace(line.substr(0, std::min(colon, line.find_last_not_of(" \t", colon - 1) + 1)),
                    value == line.npos ? "" : line.substr(value));
  }
  return entries;
}

}  // namespace

nlohmann::ordered_json machine_report(int gpus, int gpu) {
  nlohmann::ordered_json report;
  auto& processor = report["cpu_info"];
  processor["num_cores"] = cli::available_cores().online;
  const auto cpu = entries_of("/proc/cpuinfo"), memory = entries_of("/proc/meminfo");
  if (const auto name = cpu.find("model name"); name != cpu.end()) processor["cpu_info"] = name->second;
  if (const auto clock = cpu.find("cpu MHz"); clock != cpu.end())
    processor["mhz_per_cpu"] = std::strtod(clock->second.c_str(), nullptr);
  report["gpu_info"]["count"] = gpus;
  if (gpus > 0) report["gpu_info"]["model"] = gpu_info(gpu).name;
  const auto add_memory = [&](const char* name, const char* key) {
    if (const auto found = memory.find(key); found != memory.end())
      report[name] = std::strtoull(found->second.c_str(), nullptr, 10) * 1024;
  };
  add_memory("memory_total", "MemTotal");
  add_memory("memory_available", "MemAvailable");
  return report;
}

}  // namespace dtrain::observers
