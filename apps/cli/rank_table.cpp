// Each rank describes itself; an all-gather distributes the descriptions.
#include "apps/cli/rank_table.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <sched.h>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "dtrain/core/gpu_info.h"
#include "libdtrain/distributed/read_texts.h"

namespace dtrain::cli {
namespace {

using Row = std::vector<std::string>;
constexpr char kSeparator = '\t';

std::string row_of_this(const Group& group, const Machine& machine) {
  const std::vector<int> cores = cores_of(0);
  const std::string device =
      machine.gpu ? fmt::format("GPU {}, {}", machine.index, gpu_info(machine.index).name) : "CPU";
  return fmt::format(
      "{}", fmt::join(Row{std::to_string(group.rank()), group.places()[static_cast<size_t>(group.rank())].host, device,
                          list_of(numa_nodes_of(cores)), list_of(cores), machine.gpu ? "NCCL" : group.transport()},
                      "\t"));
}

Row split(const std::string& text) {
  Row row;
  size_t begin = 0;
  for (size_t end; (end = text.find(kSeparator, begin)) != std::string::npos; begin = end + 1)
    row.push_back(text.substr(begin, end - begin));
  row.push_back(text.substr(begin));
  return row;
}

}  // namespace

std::vector<int> cores_of(pid_t process) {
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(process, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text.empty() ? "-" : text;
}

std::vector<int> numa_nodes_of(const std::vector<int>& cores) {
  std::vector<int> nodes;
  for (const int core : cores) {
    std::error_code ignored;  // missing in kernels without NUMA
    for (const auto& entry :
         std::filesystem::directory_iterator(fmt::format("/sys/devices/system/cpu/cpu{}", core), ignored)) {
      const std::string name = entry.path().filename();
      int node = 0;
      if (!name.starts_with("node")) continue;
      const auto [stop, error] = std::from_chars(name.data() + 4, name.data() + name.size(), node);
      if (error == std::errc() && std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
    }
  }
  std::ranges::sort(nodes);
  return nodes;
}

std::vector<std::string> rank_table(Group& group, const Machine& machine) {
  std::vector<Row> rows = {{"rank", "host", "device", "NUMA", "cores", "transport"}};
  read_texts(group, row_of_this(group, machine), "table of the ranks", [&](int, const std::string& text) {
    constexpr size_t kMostBytes = 8 << 10;  // a list of cores may be long
    DT_CHECK(text.size() <= kMostBytes, "a row of ", text.size(), " bytes");
    rows.push_back(split(text));
    DT_CHECK(rows.back().size() == rows[0].size(), rows.back().size(), " columns");
    for (std::string& cell : rows.back()) cell = escaped(cell);
  });
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  int hosts = 0;
  for (const Place& place : group.places()) hosts = std::max(hosts, place.node + 1);
  std::vector<std::string> lines = {
      fmt::format("Ranks:       {} on {} {}", group.size(), hosts, hosts == 1 ? "host" : "hosts")};
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace dtrain::cli
