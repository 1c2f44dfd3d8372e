// Host placement of the ranks of MPI_COMM_WORLD.
#pragma once

#include <vector>

#include "dtrain/distributed/group.h"

namespace dtrain::mpi {

// By rank; collective, on the thread that calls MPI. Ranks share a host if MPI reports shared memory between them.
std::vector<Place> gather_places();

}  // namespace dtrain::mpi
