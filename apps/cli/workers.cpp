// Worker addresses and rank numbering.
#include "apps/cli/workers.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

struct Address {
  std::string host;
  int port = 0;
};

Address address_of(const std::string& worker) {
  const size_t colon = worker.rfind(':');
  int port = 0;
  const char* end = worker.data() + worker.size();
  if (colon == std::string::npos || std::from_chars(worker.data() + colon + 1, end, port).ptr != end) port = 0;
  std::string host = worker.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // of IPv6
  DT_CHECK(port > 0 && port < 65536 && !host.empty(), "--worker_hosts: '", worker,
           "': expected HOST:PORT with a port that is free there");
  return {host, port};
}

}  // namespace

std::optional<TcpOptions> Workers::tcp(const LocalRank& local) const {
  if (!are_several() || (local.count == 0 && launcher_rank(environment()).size > 1)) return std::nullopt;
  const int devices = std::max(1, local.count);
  const Address first = address_of(hosts[0]), mine = address_of(hosts[static_cast<size_t>(task)]);
  TcpOptions tcp;
  tcp.rank = task * devices + local.rank;
  tcp.size = static_cast<int>(hosts.size()) * devices;
  tcp.address = first.host;
  tcp.port = first.port;
  tcp.job = "--worker_hosts";
  tcp.members = fmt::format("{} with {} device{} each", fmt::join(hosts, ","), devices, devices > 1 ? "s" : "");
  tcp.own_address = mine.host;
  tcp.own_port = local.rank == 0 ? mine.port : 0;
  protect(tcp, environment());
  return tcp;
}

LocalJob Workers::local_job(int devices) const {
  const LauncherRank told = launcher_rank(environment());
  DT_CHECK(told.size <= 1, "--num_gpus=", devices, " for rank ", told.rank, " of ", told.size,
           ": each rank drives one device; start as many ranks as there are devices, without --num_gpus");
  static_cast<void>(tcp());  // reports invalid addresses early
  return {.count = devices,
          .first = are_several() ? task * devices : 0,
          .size = (are_several() ? static_cast<int>(hosts.size()) : 1) * devices};
}

}  // namespace dtrain::cli
