// Replicas: the ranks of a job hold the same parameters. How they come to it, and how they make sure.
#pragma once

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/distributed/communicator.h"

namespace dtrain {

// Values, running statistics, the optimiser's state and, where it is defined, the average of the values of rank `root`
// to all. Collective; waits for the device.
void broadcast_replica(ParameterStore& store, Communicator& communicator, int root, const Tensor& average = {});

// Compares checksums of values and running statistics. Throws Error(Fault::numeric) that names the ranks whose bits
// differ from those of the most; on every rank. Collective; waits for the device.
void check_replicas(ParameterStore& store, Group& group, uint64_t step);

}  // namespace dtrain
