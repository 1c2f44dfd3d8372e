// Start of programs that run alone or as one of several ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/cli/flags.h"
#include "dtrain/distributed/group.h"
#include "libdtrain/run/faults.h"

namespace dtrain::cli {

// Joins the job of this process: of mpirun, srun, torchrun or PyTorchJob if such a launcher started several ranks, else
// a job of one rank. Ranks connect by MPI; under torchrun and PyTorchJob over TCP at MASTER_ADDR, with
// DTRAIN_MASTER_ADDR over TCP at that address, and without a launcher as `tcp` says. Prints warnings on stderr. A fault
// of a peer prints `error: ...` and ends the process with the exit code of Fault::communication; Group::fail() uses the
// code of its fault. `limits`: timeouts. Throws Error(Fault::config) if the number of ranks differs from the
// launcher's, or from `expect_ranks` (0: any). The caller ends the job with finish().
std::unique_ptr<Group> open_group(const GroupOptions& limits = {}, int64_t expect_ranks = 0,
                                  const std::optional<TcpOptions>& tcp = {});

// Throws Error if flags that must be equal, or versions, differ between ranks. Collective.
void check_flags(Group& group, const FlagSet& flags);

// Faults that DTRAIN_FAULT injects into this rank, see Faults.
Faults injected_faults(const Group& group);

// "rank 3 on host-b" if a launcher's variables show several ranks; else empty.
std::string rank_name();

}  // namespace dtrain::cli
