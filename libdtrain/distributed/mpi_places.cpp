// Host names and shared-memory domains.
#include "libdtrain/distributed/mpi_places.h"

#include <map>

#include <mpi.h>
#include <unistd.h>

#include "libdtrain/distributed/mpi_transport.h"

namespace dtrain::mpi {
namespace {

struct Entry {
  char host[256] = "";
  int pid = 0, first_rank = 0, local_rank = 0, local_size = 1;  // first_rank: lowest rank on this host
};

}  // namespace

std::vector<Place> gather_places() {
  int rank = 0, size = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  Entry mine;
  gethostname(mine.host, sizeof mine.host - 1);
  mine.pid = getpid();
  MPI_Comm host;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  check(MPI_Comm_rank(host, &mine.local_rank), "MPI_Comm_rank");
  check(MPI_Comm_size(host, &mine.local_size), "MPI_Comm_size");
  check(MPI_Allreduce(&rank, &mine.first_rank, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce");
  check(MPI_Comm_free(&host), "MPI_Comm_free");
  std::vector<Entry> entries(static_cast<size_t>(size));
  check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, entries.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD),
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
