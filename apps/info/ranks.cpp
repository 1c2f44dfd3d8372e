// All-gathers the facts of the ranks, compares and prints them.
#include "apps/info/ranks.h"

#include <algorithm>
#include <set>

#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/machine.h"
#include "apps/cli/messages.h"
#include "apps/cli/rank_table.h"
#include "apps/cli/ranks.h"
#include "apps/cli/run_main.h"
#include "dtrain/core/error.h"
#include "dtrain/core/gpu_info.h"
#include "libdtrain/distributed/links.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::info {
namespace {

using nlohmann::json;

void add_device(RankFacts& facts, const RankOptions& options, int local_rank) {
  facts.device = "CPU";
  if (options.device == "cpu" || (options.device == "auto" && cuda_device_count() == 0)) return;
  const int index = cli::gpu_of_rank(local_rank);
  const std::string reason = cli::why_no_gpu(index);
  facts.device = "no GPU: " + reason;
  if (!reason.empty()) return;
  const GpuInfo gpu = gpu_info(index);
  facts.device = gpu.name;
  facts.gpu = gpu.address;
  const GpuVersions versions = gpu_versions();
  facts.versions["GPU driver"] = fmt::format("{}", versions.driver);
  for (const GpuLibrary& library : versions.libraries)
    facts.versions[library.name] = library.problem.empty() ? fmt::format("{}", library.loaded) : library.problem;
}

std::vector<RankFacts> gather(Group& group, const RankOptions& options, Versions versions) {
  const auto place_of = [&](int rank) { return group.places()[static_cast<size_t>(rank)]; };
  RankFacts mine;
  mine.versions = std::move(versions);
  mine.cores = cli::cores_of(0);
  mine.bound = mine.cores.size() < cli::cores_of(getppid()).size();
  const std::vector<int> nodes = cli::numa_nodes_of(mine.cores);
  mine.numa_nodes = nodes.empty() ? "?" : cli::list_of(nodes);
  add_device(mine, options, place_of(group.rank()).local_rank);
  const std::string text = json{{"cores", mine.cores},   {"bound", mine.bound}, {"nodes", mine.numa_nodes},
                                {"device", mine.device}, {"gpu", mine.gpu},     {"versions", mine.versions}}
                               .dump();
  std::vector<RankFacts> ranks;
  read_texts(group, text, "facts of the ranks", [&](int rank, const std::string& told) {
    constexpr size_t kMostBytes = 64 << 10;
    DT_CHECK(told.size() <= kMostBytes, told.size(), " bytes");
    const json facts = parse_json<json>(told, "facts of the ranks", Fault::communication);
    std::vector<int> cores;
    for (const json& core : facts.at("cores")) {
      cores.push_back(core.get<int>());
      DT_CHECK(core.is_number_unsigned() && cores.back() < CPU_SETSIZE, "core ", core.dump());
    }
    ranks.push_back({.name = group.name(rank),
                     .host = place_of(rank).host,
                     .cores = std::move(cores),
                     .bound = facts.at("bound"),
                     .numa_nodes = facts.at("nodes"),
                     .device = facts.at("device"),
                     .gpu = facts.at("gpu"),
                     .versions = facts.at("versions")});
  });
  return ranks;
}

void print_table(const Group& group, const std::vector<RankFacts>& ranks) {
  static constexpr char kColumns[] = "{:>5}  {:<20} {:>8} {:>6}  {:<24} {:>5}  {:<14} {}\n";
  fmt::print(kColumns, "rank", "host", "pid", "local", "device", "NUMA", "cores", "to the next rank");
  for (int rank = 0; rank < group.size(); ++rank) {
    const Place& place = group.places()[static_cast<size_t>(rank)];
    const Place& next = group.places()[static_cast<size_t>((rank + 1) % group.size())];
    const RankFacts& facts = ranks[static_cast<size_t>(rank)];
    fmt::print(kColumns, rank, cli::escaped(place.host), place.pid, place.local_rank,
               cli::escaped(facts.device + (facts.gpu.empty() ? "" : " " + facts.gpu)), cli::escaped(facts.numa_nodes),
               cli::list_of(facts.cores) + (facts.bound ? " (bound)" : ""),
               group.size() == 1 ? "none"
                                 : fmt::format("{}, {}", group.transport(),
                                               place.node != next.node      ? "network"
                                               : group.transport() == "MPI" ? "shared memory"
                                                                            : "this host"));
  }
}

void print_links(const std::vector<Link>& links) {
  constexpr double kMicro = 1e-6, kGiga = 1e9;
  for (const Link& link : links)
    fmt::print("rank {} - rank {}: latency {:.1f} us, bandwidth {:.2f} GB/s\n", link.from, link.to,
               link.latency / kMicro, link.bandwidth / kGiga);
}

}  // namespace

std::vector<std::string> what_is_off(const std::vector<RankFacts>& ranks, const RankOptions& options) {
  std::vector<std::string> faults;
  const auto add = [&](std::string fault) { faults.push_back(std::move(fault)); };
  std::set<std::string> hosts;
  std::map<std::pair<std::string, std::string>, const RankFacts*> by_gpu;
  std::map<std::pair<std::string, int>, const RankFacts*> by_core;
  std::set<std::pair<const RankFacts*, const RankFacts*>> told;
  for (const RankFacts& rank : ranks) {
    hosts.insert(rank.host);
    for (const auto& [library, version] : ranks[0].versions) {
      const auto found = rank.versions.find(library);
      const std::string theirs = found == rank.versions.end() ? "none" : found->second;
      if (theirs != version)
        add(fmt::format("{} has {} {}, {} has {}", ranks[0].name, library, version, rank.name, theirs));
    }
    if (rank.device.starts_with("no GPU")) add(fmt::format("{}: {}", rank.name, rank.device));
    if (!rank.gpu.empty()) {
      const auto [known, fresh] = by_gpu.emplace(std::pair(rank.host, rank.gpu), &rank);
      if (!fresh) add(fmt::format("{} and {} have the same GPU, {}", known->second->name, rank.name, rank.gpu));
    }
    for (const int core : rank.bound ? rank.cores : std::vector<int>{}) {
      const auto [known, fresh] = by_core.emplace(std::pair(rank.host, core), &rank);
      if (!fresh && told.emplace(known->second, &rank).second)
        add(fmt::format("{} and {} are bound to the same core, {}: start them with --bind-to none", known->second->name,
                        rank.name, core));
    }
  }
  const auto ranks_found = static_cast<int64_t>(ranks.size()), hosts_found = static_cast<int64_t>(hosts.size());
  if (options.job.expect_ranks != 0 && options.job.expect_ranks != ranks_found)
    add(fmt::format("expected {} ranks, found {}", options.job.expect_ranks, ranks_found));
  if (options.expect_hosts != 0 && options.expect_hosts != hosts_found)
    add(fmt::format("expected {} hosts, found {}", options.expect_hosts, hosts_found));
  return faults;
}

void show_ranks(const RankOptions& options, Versions versions) {
  GroupOptions limits;
  limits.setup_limit = limits.step_limit = options.job.collective_timeout;
  const std::unique_ptr<Group> group = cli::open_group(limits);
  versions["dtrain"] = cli::version();
  versions["MPI"] = mpi_version();
  const std::vector<RankFacts> ranks = gather(*group, options, versions);
  std::vector<std::string> faults = what_is_off(ranks, options);
  const bool speaks = group->rank() == 0;
  if (speaks) {
    fmt::print("{} rank{}\n", group->size(), group->size() == 1 ? "" : "s");
    print_table(*group, ranks);
    for (const auto& [library, version] : versions) fmt::print("{}: {}\n", library, version);
    std::fflush(stdout);
  }
  const std::vector<Link> links = measure_links(*group);
  if (speaks) print_links(links);
  group->finish();
  // The others end well: mpirun kills who is left once one has not, and rank 0 has something to say.
  if (speaks && !faults.empty()) throw Error(fmt::format("{}", fmt::join(faults, "; ")));
}

}  // namespace dtrain::info
