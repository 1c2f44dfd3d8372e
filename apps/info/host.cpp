// Settings as Linux shows them in files.
#include "apps/info/host.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "libdtrain/core/cores.h"

namespace dtrain::info {
namespace {

namespace fs = std::filesystem;
using List = std::vector<Advice>;

std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<int64_t> number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

// In order; none where the folder is missing.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

// "cpu12" is the numbered entry 12 of "cpu".
bool is_numbered(const fs::path& path, const std::string& name) {
  const std::string file = path.filename();
  return file.starts_with(name) && file.size() > name.size() &&
         std::isdigit(static_cast<unsigned char>(file[name.size()])) != 0;
}

int count_of(const fs::path& folder, const std::string& name) {
  return static_cast<int>(
      std::ranges::count_if(entries(folder), [&](const auto& at) { return is_numbered(at, name); }));
}

// The rest of the line of `file` that begins with `key`.
std::string value_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return line.substr(std::min(line.size(), line.find_first_not_of(" \t", key.size())));
  return "";
}

void look_at_governor(const fs::path& root, List& advice) {
  std::string governor, where;
  int slow = 0, all = 0;
  for (const fs::path& cpu : entries(root / "sys/devices/system/cpu")) {
    const fs::path file = cpu / "cpufreq/scaling_governor";
    const std::string set = is_numbered(cpu, "cpu") ? line_of(file) : "";
    if (set.empty()) continue;
    ++all;
    if (set == "performance") continue;
    if (slow++ == 0) governor = set, where = file;
  }
  if (slow > 0)
    advice.push_back({fmt::format("{} of {} cores have the governor {}", slow, all, governor), where,
                      "performance: the clock does not fall while a core waits",
                      "cpupower frequency-set -g performance"});
}

void look_at_memory(const fs::path& root, List& advice) {
  const fs::path huge = root / "sys/kernel/mm/transparent_hugepage/enabled";
  if (line_of(huge).find("[never]") != std::string::npos)
    advice.push_back({"transparent huge pages are off", huge, "madvise: large tensors ask for them",
                      "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
  const fs::path balancing = root / "proc/sys/kernel/numa_balancing";
  if (number(line_of(balancing)).value_or(0) != 0 && count_of(root / "sys/devices/system/node", "node") > 1)
    advice.push_back({"pages are moved between NUMA nodes on suspicion", balancing,
                      "off: ranks are bound to a node, and looking for pages to move costs time",
                      "sysctl -w kernel.numa_balancing=0"});
  const fs::path memory = root / "proc/meminfo", swappiness = root / "proc/sys/vm/swappiness";
  constexpr int64_t kEager = 10;
  if (number(value_of(memory, "SwapTotal:")).value_or(0) > 0 && number(line_of(swappiness)).value_or(0) > kEager)
    advice.push_back({fmt::format("there is swap, and the kernel uses it at swappiness {}", line_of(swappiness)),
                      swappiness, "1: memory that a step waits for stays", "sysctl -w vm.swappiness=1"});
}

void look_at_limits(const fs::path& root, List& advice) {
  const fs::path limits = root / "proc/self/limits";
  constexpr int64_t kFiles = 1024;
  if (const auto files = number(value_of(limits, "Max open files")); files && *files < kFiles)
    advice.push_back({fmt::format("a process may open {} files", *files), limits,
                      "65536: shards of a data set and connections of ranks are open together", "ulimit -n 65536"});
  const fs::path devices = root / "sys/class/infiniband";
  const std::string locked = value_of(limits, "Max locked memory");
  if (!entries(devices).empty() && number(locked))
    advice.push_back(
        {fmt::format("a process may lock {} bytes of memory, and there is an RDMA device", *number(locked)), limits,
         "no limit: buffers that a network card reads by itself are locked", "ulimit -l unlimited"});
}

// "size=65536k" of a mount's options, in bytes; suffixes as the kernel writes them.
std::optional<int64_t> size_option(const std::string& options) {
  const size_t at = options.find("size=");
  const std::string text = at == std::string::npos ? "" : options.substr(at + 5);
  const std::optional<int64_t> size = number(text);
  if (!size) return size;
  const char suffix = text[std::min(text.size(), text.find_first_not_of("0123456789"))];  // the end's is no letter
  const int64_t shift = suffix == 'k' ? 10 : suffix == 'm' ? 20 : suffix == 'g' ? 30 : 0;
  return *size << shift;
}

void look_at_shared_memory(const fs::path& root, List& advice) {
  const fs::path mounts = root / "proc/self/mounts";
  std::ifstream in(mounts);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string device, place, type, options;
    words >> device >> place >> type >> options;
    constexpr int64_t kEnough = int64_t{1} << 30;
    const auto size = place == "/dev/shm" ? size_option(options) : std::nullopt;
    if (size && *size < kEnough)
      advice.push_back({fmt::format("/dev/shm has {} MiB", *size >> 20), mounts,
                        "1 GiB or more: MPI and NCCL pass buffers through it",
                        "mount -o remount,size=8G /dev/shm; of a container: --shm-size=8g"});
  }
}

void look_at_clock(const fs::path& root, List& advice) {
  const fs::path clock = root / "sys/devices/system/clocksource/clocksource0/current_clocksource";
  const std::string source = line_of(clock);
  if (source == "hpet" || source == "acpi_pm" || source == "xen" || source == "jiffies")
    advice.push_back({fmt::format("the clock is {}, which takes a call of the kernel to read", source), clock, "tsc",
                      "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"});
}

void look_at_network(const fs::path& root, List& advice) {
  constexpr int64_t kJumbo = 9000;
  for (const fs::path& card : entries(root / "sys/class/net")) {
    std::error_code ignored;
    const auto mtu = number(line_of(card / "mtu"));
    if (!fs::exists(card / "device", ignored) || line_of(card / "operstate") != "up" || !mtu || *mtu >= kJumbo)
      continue;
    advice.push_back({fmt::format("{} sends packets of {} bytes", card.filename().string(), *mtu), card / "mtu",
                      "9000 or more, where the network has it and ranks of several hosts talk",
                      fmt::format("ip link set dev {} mtu 9000", card.filename().string())});
  }
}

void look_at_processor(const fs::path& root, const Environment& variables, List& advice) {
  const int quota = cpu_quota(root), cores = count_of(root / "sys/devices/system/cpu", "cpu");
  if (quota > 0 && quota < cores)
    advice.push_back({fmt::format("a quota leaves {} of {} cores, by stopping threads", quota, cores),
                      root / "proc/self/cgroup", "cores of its own, as by Kubernetes' static CPU manager",
                      "docker run --cpuset-cpus=LIST in place of --cpus"});
  const char* threads = variables("OMP_NUM_THREADS");
  if (const auto asked = number(threads == nullptr ? "" : threads); asked && cores > 0 && *asked > cores)
    advice.push_back({fmt::format("{} threads share {} cores", *asked, cores), "OMP_NUM_THREADS",
                      "no more threads than cores", "unset OMP_NUM_THREADS"});
  const char* waiting = variables("OMP_WAIT_POLICY");
  if (waiting != nullptr && strcasecmp(waiting, "active") == 0)
    advice.push_back({"threads spin while they wait", "OMP_WAIT_POLICY", "passive: others that share the cores get on",
                      "unset OMP_WAIT_POLICY"});
}

}  // namespace

std::vector<Advice> host_advice(const Environment& variables, const fs::path& root) {
  List advice;
  look_at_governor(root, advice);
  look_at_memory(root, advice);
  look_at_limits(root, advice);
  look_at_shared_memory(root, advice);
  look_at_clock(root, advice);
  look_at_network(root, advice);
  look_at_processor(root, variables, advice);
  return advice;
}

std::vector<std::string> advice_lines(const std::vector<Advice>& advice) {
  if (advice.empty()) return {"host settings: nothing to advise"};
  std::vector<std::string> lines;
  for (const Advice& item : advice)
    lines.push_back(
        fmt::format("advice: {} ({}); advised: {}; to set it: {}", item.found, item.where, item.advised, item.command));
  return lines;
}

}  // namespace dtrain::info
