// What make_communicator chooses from; the second is there in builds with its library.
#pragma once

#include "libdtrain/distributed/communicator.h"

namespace dtrain {

// Over the connections of `group`, which is that of make_mpi_group or make_tcp_group. The same bits come out of either.
std::unique_ptr<Communicator> make_host_communicator(Group& group, const CommunicatorOptions& options);
// Over NCCL, whose start is arranged by `group`, of whatever kind, one rank per GPU. What it queues can be recorded
// with a step; what was recorded must be gone before the communicator is. On a wire of 16 bits NCCL also adds in 16
// bits, unlike the ring of CPUs: for sums in f32 leave the wire at f32. `algorithm`: ring, tree, collnetdirect,
// collnetchain, nvls, nvlstree, else NCCL's own choice, which depends on the machine. A thread watches what was queued
// (Communicator::watch).
std::unique_ptr<Communicator> make_nccl_communicator(Group& group, Context& context,
                                                     const CommunicatorOptions& options);

}  // namespace dtrain
