// What make_communicator chooses from; each is there in builds with its library.
#pragma once

#include "libdtrain/dist/communicator.h"

namespace dtrain {

// Over the group's MPI thread: `group` is that of make_mpi_group.
std::unique_ptr<Communicator> make_mpi_communicator(Group& group, const CommunicatorOptions& options);
// Over NCCL, whose start is arranged by `group`, of whatever kind.
std::unique_ptr<Communicator> make_nccl_communicator(Group& group, Context& context,
                                                     const CommunicatorOptions& options);

}  // namespace dtrain
