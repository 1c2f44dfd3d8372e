// Data-parallel replicas: broadcast and consistency check of parameters.
#pragma once

#include "dtrain/autograd/parameters.h"
#include "dtrain/distributed/communicator.h"

namespace dtrain {

// Broadcasts values, running statistics, optimiser state and, if defined, the moving average from rank `root`.
// Collective; waits for the device.
void broadcast_replica(ParameterStore& store, Communicator& communicator, int root, const Tensor& average = {});

// Compares checksums of values and running statistics. Throws Error(Fault::numeric) on every rank, naming the ranks
// that differ from the majority. Collective; waits for the device.
void check_replicas(ParameterStore& store, Group& group, uint64_t step);

}  // namespace dtrain
