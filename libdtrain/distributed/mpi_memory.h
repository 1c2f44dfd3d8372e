// Shared-memory segments of Open MPI: one file per rank, by default in /dev/shm, called vader_segment... by version 4
// and sm_segment... by version 5. The launcher removes them at the end of a job; if it is killed, they remain until
// reboot.
#pragma once

#include <string>

namespace dtrain::mpi {

// Unlinks this rank's segment and returns its path; empty if there is none. The memory lives until the processes that
// map it end. Call it once all ranks of the host have opened the file.
std::string unlink_memory(int local_rank);
// Recreates the name before MPI_Finalize, which complains about a missing file.
void name_again(const std::string& path);

}  // namespace dtrain::mpi
