// Implementations of Communicator; NCCL's exists in builds with CUDA.
#pragma once

#include "dtrain/distributed/communicator.h"

namespace dtrain {

// Over the connections of `group`, from make_mpi_group or make_tcp_group; both give bitwise equal results.
std::unique_ptr<Communicator> make_host_communicator(Group& group, const CommunicatorOptions& options);
// Over NCCL, bootstrapped by any kind of `group`, one rank per GPU. Collectives can be captured in a CUDA graph, which
// must be destroyed before the communicator. With a 16-bit wire NCCL also accumulates in 16 bits, unlike the CPU ring:
// keep the wire at f32 for f32 sums. `algorithm`: ring, tree, collnetdirect, collnetchain, nvls, nvlstree, else NCCL's
// choice, which depends on the machine. A watchdog thread monitors enqueued work (Communicator::watch).
std::unique_ptr<Communicator> make_nccl_communicator(Group& group, Context& context,
                                                     const CommunicatorOptions& options);

}  // namespace dtrain
