// Host names and shared-memory domains.
#include "libdtrain/distributed/mpi_places.h"

#include <map>

#include <unistd.h>

#include "libdtrain/distributed/mpi_transport.h"
#include "libdtrain/distributed/open_mpi.h"

namespace dtrain::mpi {
namespace {

struct Entry {
  char host[256] = "";
  int pid = 0, first_rank = 0, local_rank = 0, local_size = 1;  // first_rank: lowest rank on this host
};

}  // namespace

std::vector<Place> gather_places() {
  const OpenMpi& mpi = open_mpi();
  int rank = 0, size = 0;
  check(mpi.comm_rank(mpi.comm_world, &rank), "MPI_Comm_rank");
  check(mpi.comm_size(mpi.comm_world, &size), "MPI_Comm_size");
  Entry mine;
  gethostname(mine.host, sizeof mine.host - 1);
  mine.pid = getpid();
  Comm host;
  check(mpi.comm_split_type(mpi.comm_world, kCommTypeShared, rank, mpi.info_null, &host), "MPI_Comm_split_type");
  check(mpi.comm_rank(host, &mine.local_rank), "MPI_Comm_rank");
  check(mpi.comm_size(host, &mine.local_size), "MPI_Comm_size");
  check(mpi.allreduce(&rank, &mine.first_rank, 1, mpi.integer, mpi.min, host), "MPI_Allreduce");
  check(mpi.comm_free(&host), "MPI_Comm_free");
  std::vector<Entry> entries(static_cast<size_t>(size));
  check(mpi.allgather(&mine, sizeof mine, mpi.byte, entries.data(), sizeof mine, mpi.byte, mpi.comm_world),
        "MPI_Allgather");
  std::vector<Place> places;
  std::map<int, int> nodes;  // by first rank
  for (const Entry& entry : entries) {
    const int node = nodes.emplace(entry.first_rank, static_cast<int>(nodes.size())).first->second;
    places.push_back({.host = entry.host,
                      .pid = entry.pid,
                      .local_rank = entry.local_rank,
                      .local_size = entry.local_size,
                      .node = node});
  }
  return places;
}

}  // namespace dtrain::mpi
