// Where the ranks of MPI_COMM_WORLD run.
#pragma once

#include <vector>

#include "libdtrain/distributed/group.h"

namespace dtrain::mpi {

// By rank; collective, on the thread that calls MPI. Ranks are on one host where MPI says that they share memory.
std::vector<Place> gather_places();

}  // namespace dtrain::mpi
