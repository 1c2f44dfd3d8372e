// What programs share that run alone or as one of several ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::cli {

// The job that this process belongs to: the one of mpirun, srun, torchrun or PyTorchJob where a launcher says that
// there are several ranks, else one of its own. Those of torchrun and PyTorchJob meet over TCP, at MASTER_ADDR; so do
// others where DTRAIN_MASTER_ADDR says where rank 0 is, and those of `tcp`, that no launcher has started. Warnings are
// lines on stderr; a fault of a peer prints `error: ...` there and ends the process with the exit code of
// Fault::communication; Group::fail() does so with that of its fault. `limits`: how long ranks wait for each other.
// Throws Error(Fault::config) where the job has other ranks than its launcher says, or not `expect_ranks` (0: any). The
// caller ends the job by finish().
std::unique_ptr<Group> open_group(const GroupOptions& limits = {}, int64_t expect_ranks = 0,
                                  const std::optional<TcpOptions>& tcp = {});

// Throws Error where the ranks were given different flags that must be equal, or are of different versions. Collective.
void check_flags(Group& group, const FlagSet& flags);

// "rank 3 on host-b" where a launcher's variables say that this process is one of several ranks; else nothing.
std::string rank_name();

}  // namespace dtrain::cli
