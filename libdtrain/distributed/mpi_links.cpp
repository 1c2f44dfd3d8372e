// Ping-pong between pairs of ranks, as collectives in which other ranks are idle.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "dtrain/core/error.h"
#include "libdtrain/distributed/links.h"
#include "libdtrain/distributed/mpi_group.h"
#include "libdtrain/distributed/mpi_transport.h"
#include "libdtrain/distributed/open_mpi.h"
#include "libdtrain/distributed/read_texts.h"

namespace dtrain {
namespace mpi {
namespace {

using Clock = std::chrono::steady_clock;

struct Probe {
  const char* what;
  int64_t bytes;
  int times;  // round trips
};
constexpr Probe kLatency{"latency", 8, 100}, kBandwidth{"bandwidth", 4 << 20, 8};

Transfers there_and_back(int rank, const Link& link, const Probe& probe) {
  Transfers transfers;
  const Range all{0, probe.bytes};
  const int other = rank == link.from ? link.to : link.from;
  const Transfer send{.to = other, .send = all, .from = -1, .receive = {}, .add = false};
  const Transfer receive{.to = -1, .send = {}, .from = other, .receive = all, .add = false};
  for (int i = 0; i < probe.times; ++i) {
    transfers.push_back(rank == link.from ? send : receive);
    transfers.push_back(rank == link.from ? receive : send);
  }
  return transfers;
}

// One-way seconds of the link at this rank; meaningless on ranks without one.
double time(MpiGroup& group, int lane, const std::vector<Link>& links, const Probe& probe) {
  const int rank = group.rank();
  std::vector<std::byte> memory(static_cast<size_t>(probe.bytes));
  const auto schedule = [&] {
    for (const Link& link : links)
      if (rank == link.from || rank == link.to) return there_and_back(rank, link, probe);
    return Transfers{};
  };
  group.barrier("the start of a measurement");
  const Clock::time_point begin = Clock::now();
  group.thread().wait(lane, group.thread().submit(lane, {.what = probe.what,
                                                         .bytes = static_cast<uint64_t>(probe.bytes),
                                                         .elements = {.memory = memory.data()},
                                                         .schedule = schedule,
                                                         .segment = 1 << 17}));
  return std::chrono::duration<double>(Clock::now() - begin).count() / (2 * probe.times);
}

// Links of a ring of `size`, in groups that share no rank.
std::vector<std::vector<Link>> independent_links(int size) {
  std::vector<std::vector<Link>> groups(3);
  const int links = size == 2 ? 1 : size;
  for (int rank = 0; rank < links; ++rank)
    groups[rank == size - 1 && size % 2 == 1 ? 2 : static_cast<size_t>(rank % 2)].push_back(
        {.from = rank, .to = (rank + 1) % size});
  return groups;
}

}  // namespace
}  // namespace mpi

std::string mpi_version() {
  try {
    char text[mpi::kMaxLibraryVersionString] = "";
    int length = 0;
    mpi::check(mpi::open_mpi().get_library_version(text, &length), "MPI_Get_library_version");
    const std::string version(text, static_cast<size_t>(length));
    return version.substr(0, version.find_first_of(",\n"));
  } catch (const Error& error) {
    return concat("none: ", error.what());
  }
}

std::vector<Link> measure_links(Group& group) {
  auto* ranks = dynamic_cast<mpi::MpiGroup*>(&group);
  std::vector<Link> measured;
  if (ranks == nullptr || group.size() == 1) return measured;
  const int lane = ranks->thread().open_lane("links");
  for (const std::vector<Link>& links : mpi::independent_links(group.size())) {
    if (links.empty()) continue;
    Link mine;
    mine.latency = mpi::time(*ranks, lane, links, mpi::kLatency);
    mine.bandwidth = static_cast<double>(mpi::kBandwidth.bytes) / mpi::time(*ranks, lane, links, mpi::kBandwidth);
    const std::string bytes(reinterpret_cast<const char*>(&mine), sizeof mine);
    std::vector<Link> told;
    read_texts(group, bytes, "measurements", [&](int, const std::string& text) {
      DT_CHECK(text.size() == sizeof(Link), text.size(), " bytes");
      std::memcpy(&told.emplace_back(), text.data(), text.size());
    });
    for (Link link : links) {
      const Link& theirs = told[static_cast<size_t>(link.from)];
      link.latency = theirs.latency;
      link.bandwidth = theirs.bandwidth;
      measured.push_back(link);
    }
  }
  std::ranges::sort(measured, {}, &Link::from);
  return measured;
}

}  // namespace dtrain
